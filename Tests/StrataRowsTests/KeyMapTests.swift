import Expectations
import StrataRows
import Testing

/// The map from keys to small values, beside a dictionary.
@Suite("Key maps")
struct KeyMapTests {
    @Test(arguments: [UInt64(1), 2, 3])
    func `keys that come and go are those of a dictionary`(_ seed: UInt64) {
        var state = seed
        func number(below limit: UInt64) -> Int64 {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return Int64(state >> 33) % Int64(limit)
        }
        var map = KeyMap<Int>()
        var expected: [Int64: Int] = [:]
        for step in 0..<20_000 {
            // The number of keys grows and falls in turns, in few and in many entries.
            let isGrowing = step / 1_000 % 2 == 0
            let key = number(below: 300) - 150
            if number(below: 10) < (isGrowing ? 8 : 2) {
                map.set(step, for: key)
                expected[key] = step
            } else {
                expectEqual(map.remove(key), expected.removeValue(forKey: key))
            }
            expectEqual(map.count, expected.count)
            let other = number(below: 300) - 150
            expectEqual(map[other], expected[other])
        }
        var found: [Int64: Int] = [:]
        var place = 0
        while let (key, value) = map.entry(from: &place) { expect(found.updateValue(value, forKey: key) == nil) }
        expectEqual(found, expected)
    }

    @Test func `a copy stays as it was`() {
        var map = KeyMap<Int>()
        for key in Int64(1)...40 { map.set(Int(key), for: key) }
        let copy = map
        for key in Int64(1)...39 { map.remove(key) }
        expectEqual(map.count, 1)
        expectEqual(map[40], 40)
        expectEqual(copy.count, 40)
        expect((Int64(1)...40).allSatisfy { copy[$0] == Int($0) })
        expect(map.remove(1) == nil)
        expect(KeyMap<Int>()[1] == nil)
    }
}
