def shelves(db):
    rows = db.execute(
        "SELECT a.name, b.title FROM authors a LEFT JOIN books b ON b.author = a.id "
        "ORDER BY a.name, b.year DESC, b.title"
    )
    result = {}
    for name, title in rows:
        titles = result.setdefault(name, [])
        if title is not None:
            titles.append(title)
    return result
