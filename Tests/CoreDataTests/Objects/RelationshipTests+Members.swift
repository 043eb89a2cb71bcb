import CoreData
import Expectations
import TestSupport
import Testing

/// Members come and go while the relationships of others are not loaded.
extension RelationshipTests {
    @Test(arguments: StoreKind.allCases)
    func `a member that comes to an order which is not loaded is the last, however old it is`(_ kind: StoreKind)
        throws
    {
        let stack = try Stack.objects(kind)
        let (old, mother) = try stack.inContext { context throws in
            let old = Person("old", context)
            try context.save()
            let mother = Person("m", context)
            mother.children = [Person("young", context)]
            try context.save()
            return (old.objectID, mother.objectID)
        }
        try stack.inContext { context throws in
            try context.object(Person.self, old).mother = try context.object(Person.self, mother)
            try context.save()
        }
        try stack.inContext { context throws in
            try expectEqual(context.object(Person.self, mother).children.map(\.name), ["young", "old"])
        }
    }

    @Test(arguments: StoreKind.allCases, [true, false])
    func `a member that came to the front of an order and went again leaves no change`(
        _ kind: StoreKind,
        byInverse: Bool
    ) throws {
        let stack = try Stack.objects(kind)
        let id = try stack.inContext { context throws in
            let mother = Person("m", context)
            mother.children = [Person("a", context), Person("b", context)]
            try context.save()
            return mother.objectID
        }
        try stack.inContext { context throws in
            let mother = try context.object(Person.self, id)
            let guest = Person("guest", context)
            mother.children.insert(guest, at: 0)
            if byInverse { guest.mother = nil } else { mother.children.removeFirst() }
            expectEqual(mother.children.map(\.name), ["a", "b"])
            expect(!mother.hasPersistentChangedValues && mother.changedValues().isEmpty)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a member of a one-way relationship has one owner, and none once it is deleted`(_ kind: StoreKind) throws {
        let stack = try Stack.objects(kind)
        func owners() throws -> [String?] {
            try stack.inContext { context in
                let request = NSFetchRequest<Person>(entityName: "Person")
                request.predicate = NSPredicate(format: "rivals.@count > 0")
                let all = try context.all(Person.self).filter { !$0.rivals.isEmpty }
                let found = try context.fetch(request)
                expectEqual(Set(found), Set(all))
                return all.map(\.name)
            }
        }
        try stack.inContext { context throws in
            let people = ["a", "b", "c"].map { Person($0, context) }
            people[0].rivals = [people[2]]
            try context.save()
        }
        try expectEqual(owners(), ["a"])
        try stack.inContext { context throws in
            // The former owner's relationship is not loaded.
            let people = try context.all(Person.self, sortedBy: "name")
            people[1].rivals.insert(people[2])
            try context.save()
        }
        try expectEqual(owners(), ["b"])
        try stack.inContext { context throws in
            context.delete(try context.all(Person.self, sortedBy: "name")[2])
            try context.save()
        }
        try expectEqual(owners(), [])
    }

    @Test(arguments: StoreKind.allCases)
    func `a deleted person is no friend of those who became friends meanwhile`(_ kind: StoreKind) throws {
        let stack = try Stack.objects(kind)
        let ids = try stack.inContext { context throws in
            let people = ["a", "b"].map { Person($0, context) }
            try context.save()
            return people.map(\.objectID)
        }
        let deleting = stack.context()
        try deleting.performAndWait {
            let doomed = try deleting.object(Person.self, ids[0])
            expect(doomed.friends.isEmpty)
            deleting.delete(doomed)
            deleting.processPendingChanges()
            try stack.inContext { context throws in
                try context.object(Person.self, ids[1]).friends = [try context.object(Person.self, ids[0])]
                try context.save()
            }
            try deleting.save()
        }
        try stack.inContext { context throws in
            let request = NSFetchRequest<Person>(entityName: "Person")
            request.predicate = NSPredicate(format: "friends.@count > 0")
            try expectEqual(context.count(for: request), 0)
            try expect(context.object(Person.self, ids[1]).friends.isEmpty)
        }
    }

    @Test(arguments: StoreKind.allCases, [false, true])
    func `a member that changes its owner is the last of the new one's, whatever its place was`(
        _ kind: StoreKind,
        onlyMemberTells: Bool
    ) throws {
        let stack = try Stack.objects(kind)
        let (mother, child) = try stack.inContext { context throws in
            let mothers = [Person("m", context), Person("n", context)]
            for mother in mothers { mother.children = (0..<3).map { Person("\(mother.name ?? "") \($0)", context) } }
            try context.save()
            return (mothers[1].objectID, mothers[0].children[0].objectID)
        }
        try stack.inContext { context throws in
            // The children of the two mothers are not loaded.
            let (child, mother) = (try context.object(Person.self, child), try context.object(Person.self, mother))
            child.mother = mother
            if onlyMemberTells { context.refresh(mother, mergeChanges: false) }
            try context.save()
        }
        try stack.inContext { context throws in
            let names = try context.object(Person.self, mother).children.map(\.name)
            expectEqual(names, ["n 0", "n 1", "n 2", "m 0"])
        }
    }
}
