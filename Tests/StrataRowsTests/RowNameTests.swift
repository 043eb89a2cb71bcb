import Expectations
import StrataRows
import Testing

@Suite("Names of rows")
struct RowNameTests {
    @Test func `rows of different stores, hierarchies and keys have different names`() {
        let names = [
            RowName(root: 1, key: 1), RowName(root: 1, key: 2), RowName(root: 2, key: 1),
            RowName(store: 1, root: 1, key: 1),
            RowName(store: 2, root: 1, key: 1),
        ]
        expectEqual(Set(names).count, names.count)
        expectEqual(RowName(store: 1, root: 1, key: 1), names[3])
        expectEqual(RowName(Row(layout: Schemas.items.entities[0], key: 2)), names[1])
    }

    @Test func `a row under a temporary key has the same name in any store`() {
        expectEqual(RowName(store: 1, root: 1, key: -5), RowName(store: -1, root: 1, key: -5))
        expect(RowName(store: 1, root: 1, key: -5) != RowName(store: 1, root: 1, key: -6))
    }
}
