import re

UNITS = {"d": 86400, "h": 3600, "m": 60, "s": 1}
MOST = {"d": 0, "h": 24, "m": 60, "s": 60}
FORM = re.compile(r"(?:(\d+)d)?(?: ?(\d+)h)?(?: ?(\d+)m)?(?: ?(\d+)s)?", re.ASCII)


def parse_duration(text):
    text = text.strip(" ").lower()
    if re.fullmatch(r"\d+", text, re.ASCII):
        return int(text)
    match = FORM.fullmatch(text)
    if not text or match is None:
        raise ValueError(f"not a duration: {text!r}")
    total, is_first = 0, True
    for unit, digits in zip(UNITS, match.groups(), strict=True):
        if digits is None:
            continue
        if not is_first and int(digits) >= MOST[unit]:
            raise ValueError(f"too many {unit}")
        total, is_first = total + int(digits) * UNITS[unit], False
    return total
