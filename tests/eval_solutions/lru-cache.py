from collections import OrderedDict


class LRUCache:
    def __init__(self, capacity):
        if capacity < 1:
            raise ValueError("a capacity of at least 1")
        self._capacity, self._values = capacity, OrderedDict()

    def get(self, key, default=None):
        if key not in self._values:
            return default
        self._values.move_to_end(key)
        return self._values[key]

    def put(self, key, value):
        self._values[key] = value
        self._values.move_to_end(key)
        if len(self._values) > self._capacity:
            self._values.popitem(last=False)

    def keys(self):
        return list(self._values)

    def __len__(self):
        return len(self._values)
