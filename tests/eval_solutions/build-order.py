import heapq


def build_order(needs):
    wanted = {name: set(listed) for name, listed in needs.items()}
    for listed in needs.values():
        for name in listed:
            wanted.setdefault(name, set())
    users = {name: [] for name in wanted}
    for name, listed in wanted.items():
        for other in listed:
            users[other].append(name)
    left = {name: len(listed) for name, listed in wanted.items()}
    free = [name for name, count in left.items() if not count]
    heapq.heapify(free)
    order = []
    while free:
        name = heapq.heappop(free)
        order.append(name)
        for user in users[name]:
            left[user] -= 1
            if not left[user]:
                heapq.heappush(free, user)
    if len(order) < len(wanted):
        raise ValueError(" -> ".join(cycle(wanted, set(wanted) - set(order))))
    return order


def cycle(wanted, stuck):
    path, name = [], min(stuck)
    while name not in path:
        path.append(name)
        name = min(other for other in wanted[name] if other in stuck)
    path = path[path.index(name) :]
    first = path.index(min(path))
    return [*path[first:], *path[:first], min(path)]
