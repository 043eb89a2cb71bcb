import Expectations
import StrataRows
import Testing

@Suite("Versions of rows")
struct RowVersionTests {
    @Test func `an engine without marks counts`() {
        expectEqual(RowVersion.next(after: 0, mark: nil), 1)
        expectEqual(RowVersion.next(after: 41, mark: nil), 42)
    }

    @Test(arguments: [0, 1, 41, 1 << 28, 7 << 28 | 5] as [Int64])
    func `a later version is the higher number, and two saves never give the same one`(_ base: Int64) {
        let (one, other) = (RowVersion.next(after: base, mark: 3), RowVersion.next(after: base, mark: 4))
        expect(one > base && other > base && one != other)
        expect(RowVersion.next(after: one, mark: 1) > other)
        expect(RowVersion.isOvertaken(base, by: one, .marked))
        expect(!RowVersion.isOvertaken(one, by: base, .marked))
        // Two histories, neither of which comes after the other.
        expect(RowVersion.isOvertaken(one, by: other, .marked) && RowVersion.isOvertaken(other, by: one, .marked))
        expect(!RowVersion.isOvertaken(one, by: one, .marked))
    }

    @Test func `versions that are counted are overtaken by higher ones only`() {
        expect(RowVersion.isOvertaken(1, by: 2, .marked))
        expect(!RowVersion.isOvertaken(2, by: 1, .marked))
        expect(!RowVersion.isOvertaken(-1, by: -1, .marked))
    }

    @Test func `after a restoration all versions are higher than before, and show the same count`() {
        let (before, after) = (RowVersion.offset(1) + 9, RowVersion.offset(2) + 3)
        expectEqual(RowVersion.offset(0), 0)
        expect(before > 1 << 51 && after > before)
        expect(RowVersion.isOvertaken(before, by: after, .offset))
        expect(!RowVersion.isOvertaken(after, by: before, .offset))
        // Within one epoch only the count matters.
        expect(!RowVersion.isOvertaken(before, by: before - 1, .offset))
        expectEqual([9, before, after].map { RowVersion.shown($0, .offset) }, [9, 9, 3])
        expectEqual(RowVersion.shown(before, .marked), before)
        expectEqual(RowVersion.next(after: 0, offset: RowVersion.offset(2)), RowVersion.offset(2) + 1)
        expectEqual(RowVersion.next(after: before, offset: RowVersion.offset(2)), RowVersion.offset(2) + 10)
        expectEqual(RowVersion.next(after: 7, offset: 0), 8)
    }

    @Test func `a mark is never nothing, and has the bits that there are for it`() {
        expectEqual(RowVersion.mark(0), 1)
        expectEqual(RowVersion.mark(.max), 1 << 28 - 1)
    }
}
