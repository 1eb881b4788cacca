class RateLimiter:
    def __init__(self, rate, burst, clock):
        self._rate, self._burst, self._clock = rate, burst, clock
        self._buckets = {}

    def _tokens(self, key):
        now = self._clock()
        tokens, then = self._buckets.get(key, (self._burst, now))
        tokens = min(self._burst, tokens + max(0.0, now - then) * self._rate)
        self._buckets[key] = (tokens, now)
        return tokens

    def allow(self, key, cost=1):
        tokens = self._tokens(key)
        if tokens < cost:
            return False
        self._buckets[key] = (tokens - cost, self._buckets[key][1])
        return True

    def wait(self, key, cost=1):
        if cost > self._burst:
            raise ValueError("more than a bucket holds")
        return max(0.0, (cost - self._tokens(key)) / self._rate)
