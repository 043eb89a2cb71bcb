"""Random numbers that are the same on every machine and with every version of Python: SplitMix64.

The state begins with the first eight bytes of the SHA-256 of the seed's decimal digits. Each draw adds 0x9E3779B97F4A7C15 to it and
mixes the sum. A number below a bound comes from draws without the remainder that would favour small numbers.
"""

import hashlib

MASK = (1 << 64) - 1


class Dice:
    def __init__(self, seed):
        self.state = int.from_bytes(hashlib.sha256(str(seed).encode()).digest()[:8], "big")

    def next(self):
        self.state = (self.state + 0x9E3779B97F4A7C15) & MASK
        mixed = self.state
        mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & MASK
        return mixed ^ (mixed >> 31)

    def below(self, bound):
        limit = (1 << 64) - (1 << 64) % bound
        while True:
            number = self.next()
            if number < limit:
                return number % bound

    def choice(self, items):
        return items[self.below(len(items))]

    def shuffled(self, items):
        """Yields the items in random order (Fisher and Yates), each drawn when it is asked for."""
        rest = list(items)
        for index in range(len(rest)):
            other = index + self.below(len(rest) - index)
            rest[index], rest[other] = rest[other], rest[index]
            yield rest[index]
