import CoreData
import Expectations
import TestSupport
import Testing

@testable import CoreDataEssentials
@testable import StrataRows

/// The objects and IDs that a context and its stores keep.
@Suite("Objects and IDs that nothing holds")
struct ReachableObjectsTests {
    @Test(arguments: UInt64(1)...12)
    func `held objects are registered, and rings, and all that these lead to`(_ seed: UInt64) throws {
        var state = seed
        func number(below limit: Int) -> Int {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return Int(state >> 33) % limit
        }
        let count = 40
        let stack = try Stack.objects(.memory)
        var leads = Array(repeating: Array(repeating: false, count: count), count: count)
        let ids = try stack.inContext { context throws in
            let objects = (0..<count).map { _ in Hooked(context: context) }
            for (index, object) in objects.enumerated() {
                if number(below: 3) > 0 {
                    let owner = number(below: count)
                    object.owner = objects[owner]
                    leads[index][owner] = true
                }
                if number(below: 6) == 0 {
                    let other = number(below: count)
                    object.loose = objects[other]
                    leads[index][other] = true
                }
            }
            try context.save()
            return objects.map(\.objectID)
        }
        for middle in 0..<count {
            for from in 0..<count where leads[from][middle] {
                for to in 0..<count where leads[middle][to] { leads[from][to] = true }
            }
        }
        try stack.inContext { context throws in
            let held = try holding(ids, in: context) { _ in number(below: 10) == 0 }
            let isHeld = ids.map { id in held.contains { $0.objectID === id } }
            let expected = (0..<count).filter { object in
                (0..<count).contains { (isHeld[$0] || leads[$0][$0]) && ($0 == object || leads[$0][object]) }
            }
            let registered = Set(context.registeredObjects.map(\.objectID))
            expectEqual((0..<count).filter { registered.contains(ids[$0]) }, expected)
            // The search leaves nothing behind: it has the same result again.
            expectEqual(Set(context.registeredObjects.map(\.objectID)), registered)
            expect(!held.contains { $0.flags.contains(.sought) })
        }
    }

    /// Reads all objects with their relationships, and lets go of all but some.
    private func holding(_ ids: [NSManagedObjectID], in context: NSManagedObjectContext, _ isHeld: (Int) -> Bool) throws
        -> [Hooked]
    {
        let all = try ids.map { try context.object(Hooked.self, $0) }
        for object in all { _ = (object.owner, object.loose) }
        return all.indices.filter(isHeld).map { all[$0] }
    }

    @Test(arguments: StoreKind.allCases)
    func `after a large save there are only the IDs that code holds, and no place for unsaved objects`(
        _ kind: StoreKind
    ) throws {
        let stack = try Stack(kind)
        try stack.inContext { context throws in
            let tags = (0..<5000).map { _ in Tag(context: context) }
            let (before, first) = (tags[1].objectID, tags[0])
            expect(before.isTemporaryID)
            try context.save()
            let held = first.objectID
            expect(before.latest === tags[1].objectID)
            let store = try require(stack.coordinator.openStore(at: 0))
            expect(store.ids.count < 100, "\(store.ids.count) IDs")
            expectEqual(context.identityMap.temporaryObjects.capacity, 0)
            for tag in tags { tag.title = "changed" }
            try context.save()
            expect(first.objectID === held && before.latest === tags[1].objectID)
            expect(store.ids.count < 100, "\(store.ids.count) IDs")
            expectEqual(Set(tags.map(\.objectID)).count, 5000)
        }
    }
}
