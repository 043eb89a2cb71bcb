import CoreData
import Expectations
import StrataRows
import TestSupport
import Testing

@testable import CoreDataEssentials
@testable import CoreDataMigration
@testable import CoreDataModelFiles

@Suite("Members that were added or taken out")
struct MemberSetTests {
    private func member(_ key: Int64) -> ObjectReference { ObjectReference(key: key, entity: 1) }

    @Test func `one member is there, and gone when it is taken out`() {
        var set: MemberSet = []
        expect(set.isEmpty && !set.contains(member(1)) && Array(set).isEmpty)
        expect(!set.remove(member(1)))
        set.insert(member(1))
        set.insert(member(1))
        expect(!set.isEmpty && set.contains(member(1)) && !set.contains(member(2)))
        expectEqual(Array(set), [member(1)])
        expect(!set.remove(member(2)))
        expect(set.remove(member(1)))
        expect(set.isEmpty)
    }

    @Test(arguments: DifferentialSeeds.all)
    func `it is a set, whatever comes and goes`(_ seed: UInt64) {
        var generator = SeededRandom(seed: seed)
        var (set, model): (MemberSet, Set<ObjectReference>) = ([], [])
        for _ in 0..<2_000 {
            let member = member(.random(in: 1...6, using: &generator))
            switch Int.random(in: 0..<8, using: &generator) {
            case 0..<4:
                set.insert(member)
                model.insert(member)
            case 4..<7: expectEqual(set.remove(member), model.remove(member) != nil)
            default:
                let bound = member.key
                set.removeAll { $0.key > bound }
                model = model.filter { $0.key <= bound }
            }
            expectEqual(set.isEmpty, model.isEmpty)
            expectEqual(set.contains(member), model.contains(member))
            let members = Array(set)
            expectEqual(members.count, model.count)
            expectEqual(Set(members), model)
            expectEqual(Set(MemberSet(members)), model)
        }
    }
}
