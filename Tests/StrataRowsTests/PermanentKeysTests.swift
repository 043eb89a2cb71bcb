import Expectations
import StrataRows
import Testing

/// The permanent keys of temporary ones, beside a dictionary.
@Suite("Permanent keys of temporary ones")
struct PermanentKeysTests {
    @Test(arguments: [UInt64(1), 2, 3, 4])
    func `keys in runs, with gaps, backwards and far apart are those of a dictionary`(_ seed: UInt64) {
        var state = seed
        func number(below limit: UInt64) -> Int64 {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return Int64(state >> 33) % Int64(limit)
        }
        var keys = PermanentKeys(minimumCapacity: 10)
        var expected: [Int64: Int64] = [:]
        var temporary: Int64 = -1000
        for step in Int64(1)...3000 {
            switch number(below: 20) {
            case 0: temporary -= number(below: 3000)
            case 1: temporary += number(below: 3000)
            case 2: temporary += 1
            default: temporary -= 1
            }
            keys.set(step, for: temporary)
            expected[temporary] = step
            expectEqual(keys.count, expected.count)
            let other = temporary + number(below: 40) - 20
            expectEqual(keys[other], expected[other])
        }
        expect(expected.allSatisfy { keys[$0.key] == $0.value })
        var found: [Int64: Int64] = [:]
        keys.forEach { expect(found.updateValue($1, forKey: $0) == nil) }
        expectEqual(found, expected)
    }

    @Test func `a copy stays as it was, and no key has none`() {
        var keys = PermanentKeys()
        expect(keys[-1] == nil && keys[0] == nil && keys.count == 0)
        keys.set(7, for: -1)
        let copy = keys
        keys.set(8, for: -2)
        keys.set(9, for: .min)
        expectEqual([keys[-1], keys[-2], keys[.min], keys[-3]], [7, 8, 9, nil])
        expectEqual([copy[-1], copy[-2], copy[.min]], [7, nil, nil])
        expectEqual([keys.count, copy.count], [3, 1])
    }
}
