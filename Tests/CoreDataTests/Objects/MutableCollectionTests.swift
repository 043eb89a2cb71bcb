import CoreData
import Expectations
import TestSupport
import Testing

/// Every public member of Foundation's mutable collections, called on those that stand for relationships.
///
/// Each change is made to an owner with the members 0 to 4, of the objects 0 to 7.
@Suite("Each member of the collections that stand for relationships", .timeLimit(.minutes(20)))
struct MutableCollectionTests {
    private typealias Objects = [NSManagedObject]
    private typealias Change<Collection> = (
        name: String, change: @Sendable (Collection, Objects) -> Void, after: [Int]
    )
    private typealias Read<Collection> = (name: String, read: @Sendable (Collection, Objects) -> [Int])

    private static func order(_ first: Any, _ second: Any) -> ComparisonResult {
        // Backwards: 4 before 0.
        let (first, second) = (number(first), number(second))
        return first == second ? .orderedSame : first > second ? .orderedAscending : .orderedDescending
    }

    /// An object's number, which is its name.
    private static func number(_ object: Any) -> Int {
        guard let object = object as? NSManagedObject else { return -1 }
        let key = object is Photo || object is TestSupport.Tag ? "title" : "name"
        return (object.value(forKey: key) as? String).flatMap { Int($0) } ?? -1
    }

    private static func withPointer(
        _ objects: some Sequence<NSManagedObject>,
        _ body: (UnsafePointer<AnyObject>?, Int) -> Void
    ) {
        objects.map { $0 as AnyObject }.withUnsafeBufferPointer { body($0.baseAddress, $0.count) }
    }

    private static func range(_ start: Int, _ length: Int) -> NSRange { NSRange(location: start, length: length) }

    /// Each member of `NSMutableOrderedSet` that changes it, with the members afterwards.
    private static let orderedChanges: [Change<NSMutableOrderedSet>] = [
        ("insert(_:at:)", { $0.insert($1[5], at: 1) }, [0, 5, 1, 2, 3, 4]),
        ("insert(_:at:) of a member", { $0.insert($1[3], at: 1) }, [0, 1, 2, 3, 4]),
        ("removeObject(at:)", { set, _ in set.removeObject(at: 1) }, [0, 2, 3, 4]),
        ("replaceObject(at:with:)", { $0.replaceObject(at: 1, with: $1[5]) }, [0, 5, 2, 3, 4]),
        ("replaceObject(at:with:) of a member", { $0.replaceObject(at: 1, with: $1[3]) }, [0, 3, 2, 4]),
        ("subscript", { $0[4] = $1[6] }, [0, 1, 2, 3, 6]),
        ("add(_:)", { $0.add($1[5]) }, [0, 1, 2, 3, 4, 5]),
        ("add(_:) of a member", { $0.add($1[0]) }, [0, 1, 2, 3, 4]),
        (
            "add(_:count:)",
            { set, all in withPointer(all[4...6]) { set.add($0, count: $1) } },
            [0, 1, 2, 3, 4, 5, 6]
        ),
        ("addObjects(from:)", { $0.addObjects(from: [$1[6], $1[5], $1[6], $1[0]]) }, [0, 1, 2, 3, 4, 6, 5]),
        (
            "exchangeObject(at:withObjectAt:)", { set, _ in set.exchangeObject(at: 0, withObjectAt: 3) },
            [3, 1, 2, 0, 4]
        ),
        ("moveObjects(at:to:)", { set, _ in set.moveObjects(at: [0, 3], to: 1) }, [1, 0, 3, 2, 4]),
        ("insert(_:at:) of several", { $0.insert([$1[5], $1[6]], at: [0, 6]) }, [5, 0, 1, 2, 3, 4, 6]),
        ("setObject(_:at:)", { $0.setObject($1[5], at: 2) }, [0, 1, 5, 3, 4]),
        ("setObject(_:at:) at the end", { $0.setObject($1[5], at: 5) }, [0, 1, 2, 3, 4, 5]),
        (
            "replaceObjects(in:with:count:)",
            { set, all in withPointer(all[5...7]) { set.replaceObjects(in: range(1, 2), with: $0, count: $1) } },
            [0, 5, 6, 7, 3, 4]
        ),
        ("replaceObjects(at:with:)", { $0.replaceObjects(at: [0, 2], with: [$1[5], $1[6]]) }, [5, 1, 6, 3, 4]),
        ("removeObjects(in:) by range", { set, _ in set.removeObjects(in: range(1, 2)) }, [0, 3, 4]),
        ("removeObjects(at:)", { set, _ in set.removeObjects(at: [0, 2, 4]) }, [1, 3]),
        ("removeAllObjects()", { set, _ in set.removeAllObjects() }, []),
        ("remove(_:)", { $0.remove($1[2]) }, [0, 1, 3, 4]),
        ("remove(_:) of a stranger", { $0.remove($1[7]) }, [0, 1, 2, 3, 4]),
        ("removeObjects(in:) by array", { $0.removeObjects(in: [$1[1], $1[7], $1[4]]) }, [0, 2, 3]),
        ("intersect(_:)", { $0.intersect(NSOrderedSet(array: [$1[3], $1[7], $1[1]])) }, [1, 3]),
        ("minus(_:)", { $0.minus(NSOrderedSet(array: [$1[3], $1[7], $1[1]])) }, [0, 2, 4]),
        ("union(_:)", { $0.union(NSOrderedSet(array: [$1[7], $1[3], $1[5]])) }, [0, 1, 2, 3, 4, 7, 5]),
        ("intersect(_:) with itself", { set, _ in set.intersect(set) }, [0, 1, 2, 3, 4]),
        ("minus(_:) of itself", { set, _ in set.minus(set) }, []),
        ("union(_:) with itself", { set, _ in set.union(set) }, [0, 1, 2, 3, 4]),
        ("intersectSet(_:)", { $0.intersectSet([$1[3], $1[7], $1[1]]) }, [1, 3]),
        ("minusSet(_:)", { $0.minusSet([$1[3], $1[7], $1[1]]) }, [0, 2, 4]),
        ("unionSet(_:)", { $0.unionSet([$1[5], $1[3]]) }, [0, 1, 2, 3, 4, 5]),
        ("sort(comparator:)", { set, _ in set.sort(comparator: order) }, [4, 3, 2, 1, 0]),
        ("sort(options:)", { set, _ in set.sort(options: [.stable], usingComparator: order) }, [4, 3, 2, 1, 0]),
        (
            "sortRange(_:)", { set, _ in set.sortRange(range(1, 3), options: [], usingComparator: order) },
            [0, 3, 2, 1, 4]
        ),
        (
            "sort(using:)",
            { set, all in
                let key = all[0] is Photo ? "title" : "name"
                set.sort(using: [NSSortDescriptor(key: key, ascending: false)])
            },
            [4, 3, 2, 1, 0]
        ),
        ("filter(using:)", { set, _ in set.filter(using: NSPredicate { one, _ in number(one as Any) > 2 }) }, [3, 4]),
    ]

    /// Each member of `NSOrderedSet` that reads, with what it gives of an ordered set.
    private static let orderedReads: [Read<NSOrderedSet>] = [
        ("count", { set, _ in [set.count] }),
        ("firstObject", { set, _ in [set.firstObject.map(number) ?? -2] }),
        ("lastObject", { set, _ in [set.lastObject.map(number) ?? -2] }),
        ("object(at:)", { set, _ in [number(set.object(at: 1))] }),
        ("subscript", { set, _ in [number(set[2])] }),
        ("objects(at:)", { set, _ in set.objects(at: [0, 2]).map(number) }),
        ("index(of:)", { set, all in all.map { set.index(of: $0) } }),
        ("array", { set, _ in set.array.map(number) }),
        ("set", { set, _ in set.set.map { number($0.base) }.sorted() }),
        ("a loop", { set, _ in set.map(number) }),
        ("objectEnumerator()", { set, _ in set.objectEnumerator().map(number) }),
        ("reverseObjectEnumerator()", { set, _ in set.reverseObjectEnumerator().map(number) }),
        ("reversed", { set, _ in set.reversed.array.map(number) }),
        ("contains(_:)", { set, all in all.map { set.contains($0) ? 1 : 0 } }),
        ("isEqual(to:)", { set, all in [set.isEqual(to: NSOrderedSet(array: Array(all[..<5]))) ? 1 : 0] }),
        ("isEqual(_:)", { set, all in [set.isEqual(NSOrderedSet(array: Array(all[..<6]))) ? 1 : 0] }),
        ("isEqual(_:) of another", { set, all in [NSOrderedSet(array: Array(all[..<6])).isEqual(set) ? 1 : 0] }),
        ("intersects(_:)", { set, all in all.map { set.intersects(NSOrderedSet(object: $0)) ? 1 : 0 } }),
        ("intersectsSet(_:)", { set, all in all.map { set.intersectsSet([$0]) ? 1 : 0 } }),
        (
            "isSubset(of:)",
            { set, all in (0...8).map { set.isSubset(of: NSOrderedSet(array: Array(all[..<$0]))) ? 1 : 0 } }
        ),
        ("isSubset(of:) of a set", { set, all in (0...8).map { set.isSubset(of: Set(all[..<$0])) ? 1 : 0 } }),
        (
            "enumerateObjects(_:)",
            { set, _ in
                var seen: [Int] = []
                set.enumerateObjects { one, index, _ in seen += [number(one), index] }
                return seen
            }
        ),
        (
            "enumerateObjects(options:using:)",
            { set, _ in
                var seen: [Int] = []
                set.enumerateObjects(options: [.reverse]) { one, index, _ in seen += [number(one), index] }
                return seen
            }
        ),
        (
            "enumerateObjects(at:)",
            { set, _ in
                var seen: [Int] = []
                set.enumerateObjects(at: [1, 2], options: []) { one, index, _ in seen += [number(one), index] }
                return seen
            }
        ),
        ("index(ofObjectPassingTest:)", { set, _ in [set.index { one, _, _ in number(one) == 2 }] }),
        ("index(_:ofObjectPassingTest:)", { set, _ in [set.index([.reverse]) { one, _, _ in number(one) < 3 }] }),
        (
            "index(ofObjectAt:)",
            { set, _ in [set.index(ofObjectAt: [1, 2], options: []) { one, _, _ in number(one) > 2 }] }
        ),
        ("indexes(ofObjectsPassingTest:)", { set, _ in Array(set.indexes { one, _, _ in number(one) > 2 }) }),
        ("indexes(options:)", { set, _ in Array(set.indexes(options: []) { one, _, _ in number(one) > 2 }) }),
        (
            "indexes(ofObjectsAt:)",
            { set, _ in Array(set.indexes(ofObjectsAt: [1, 2], options: []) { one, _, _ in number(one) > 2 }) }
        ),
        (
            "index(of:inSortedRange:)",
            { set, all in
                [set.index(of: all[2], inSortedRange: range(0, 3), options: []) { order($1, $0) }]
            }
        ),
        ("sortedArray(comparator:)", { set, _ in set.sortedArray(comparator: order).map(number) }),
        ("sortedArray(options:)", { set, _ in set.sortedArray(options: [], usingComparator: order).map(number) }),
        (
            "sortedArray(using:)",
            { set, all in
                let key = all[0] is Photo ? "title" : "name"
                return set.sortedArray(using: [NSSortDescriptor(key: key, ascending: false)]).map(number)
            }
        ),
        ("copy()", { set, _ in (set.copy() as? NSOrderedSet)?.array.map(number) ?? [] }),
        ("mutableCopy()", { set, _ in (set.mutableCopy() as? NSMutableOrderedSet)?.array.map(number) ?? [] }),
        ("init(orderedSet:)", { set, _ in NSOrderedSet(orderedSet: set).array.map(number) }),
        ("description", { set, _ in [set.description == NSOrderedSet(array: set.array).description ? 1 : 0] }),
        (
            "description(withLocale:)",
            { set, _ in
                [
                    set.description(withLocale: nil).isEmpty ? 0 : 1,
                    set.description(withLocale: nil, indent: 1).isEmpty ? 0 : 1,
                ]
            }
        ),
    ]

    /// Each member of `NSMutableSet` that changes it, with the members afterwards.
    private static let unorderedChanges: [Change<NSMutableSet>] = [
        ("add(_:)", { $0.add($1[5]) }, [0, 1, 2, 3, 4, 5]),
        ("add(_:) of a member", { $0.add($1[0]) }, [0, 1, 2, 3, 4]),
        ("remove(_:)", { $0.remove($1[2]) }, [0, 1, 3, 4]),
        ("remove(_:) of a stranger", { $0.remove($1[7]) }, [0, 1, 2, 3, 4]),
        ("addObjects(from:)", { $0.addObjects(from: [$1[6], $1[5], $1[6], $1[0]]) }, [0, 1, 2, 3, 4, 5, 6]),
        ("intersect(_:)", { $0.intersect([$1[3], $1[7], $1[1]]) }, [1, 3]),
        ("minus(_:)", { $0.minus([$1[3], $1[7], $1[1]]) }, [0, 2, 4]),
        ("removeAllObjects()", { set, _ in set.removeAllObjects() }, []),
        ("union(_:)", { $0.union([$1[5], $1[3]]) }, [0, 1, 2, 3, 4, 5]),
        ("setSet(_:)", { $0.setSet([$1[5], $1[3]]) }, [3, 5]),
        ("filter(using:)", { set, _ in set.filter(using: NSPredicate { one, _ in number(one as Any) > 2 }) }, [3, 4]),
    ]

    /// Each member of `NSSet` that reads, with what it gives of a set.
    private static let unorderedReads: [Read<NSSet>] = [
        ("count", { set, _ in [set.count] }),
        ("member(_:)", { set, all in all.map { set.member($0).map(number) ?? -2 } }),
        ("objectEnumerator()", { set, _ in set.objectEnumerator().map(number).sorted() }),
        ("a loop", { set, _ in set.map(number).sorted() }),
        ("allObjects", { set, _ in set.allObjects.map(number).sorted() }),
        ("anyObject()", { set, all in [set.anyObject().map { all.map(number).contains(number($0)) ? 1 : 0 } ?? -2] }),
        ("contains(_:)", { set, all in all.map { set.contains($0) ? 1 : 0 } }),
        ("intersects(_:)", { set, all in all.map { set.intersects([$0]) ? 1 : 0 } }),
        ("isEqual(to:)", { set, all in (0...8).map { set.isEqual(to: Set(all[..<$0])) ? 1 : 0 } }),
        ("isEqual(_:)", { set, all in (0...8).map { set.isEqual(NSSet(array: Array(all[..<$0]))) ? 1 : 0 } }),
        (
            "isEqual(_:) of another",
            { set, all in (0...8).map { NSSet(array: Array(all[..<$0])).isEqual(set) ? 1 : 0 } }
        ),
        ("hash", { set, _ in [set.hash == NSSet(array: set.allObjects).hash ? 1 : 0] }),
        ("isSubset(of:)", { set, all in (0...8).map { set.isSubset(of: Set(all[..<$0])) ? 1 : 0 } }),
        ("adding(_:)", { set, all in set.adding(all[7]).map { number($0.base) }.sorted() }),
        ("addingObjects(from:)", { set, all in set.addingObjects(from: [all[7]]).map { number($0.base) }.sorted() }),
        (
            "addingObjects(from:) of a set",
            { set, all in set.addingObjects(from: Set([all[7]])).map { number($0.base) }.sorted() }
        ),
        (
            "enumerateObjects(_:)",
            { set, _ in
                var seen: [Int] = []
                set.enumerateObjects { one, _ in seen.append(number(one)) }
                return seen.sorted()
            }
        ),
        (
            "enumerateObjects(options:)",
            { set, _ in
                var seen: [Int] = []
                set.enumerateObjects(options: []) { one, _ in seen.append(number(one)) }
                return seen.sorted()
            }
        ),
        (
            "objects(passingTest:)",
            { set, _ in set.objects { one, _ in number(one) > 2 }.map { number($0.base) }.sorted() }
        ),
        (
            "objects(options:)",
            { set, _ in set.objects(options: []) { one, _ in number(one) > 2 }.map { number($0.base) }.sorted() }
        ),
        (
            "sortedArray(using:)",
            { set, _ in set.sortedArray(using: [NSSortDescriptor(key: "title", ascending: false)]).map(number) }
        ),
        (
            "filtered(using:)",
            { set, _ in
                set.filtered(using: NSPredicate { one, _ in number(one as Any) > 2 }).map { number($0.base) }.sorted()
            }
        ),
        ("copy()", { set, _ in (set.copy() as? NSSet)?.map(number).sorted() ?? [] }),
        ("mutableCopy()", { set, _ in (set.mutableCopy() as? NSMutableSet)?.map(number).sorted() ?? [] }),
        ("init(set:)", { set, _ in NSSet(set: set).map(number).sorted() }),
        ("description", { set, all in [all.contains { set.description.contains("\($0)") } ? 1 : 0] }),
        ("description(withLocale:)", { set, _ in [set.description(withLocale: nil).isEmpty ? 0 : 1] }),
    ]

    /// An ordered relationship: with a to-one inverse, or with a to-many one.
    enum Ordered: String, CaseIterable, Sendable {
        case photos, favourites

        func owner(_ context: NSManagedObjectContext) -> NSManagedObject {
            guard self == .favourites else { return Venue(context: context) }
            let user = User(context: context)
            user.email = UUID().uuidString
            return user
        }

        func objects(_ context: NSManagedObjectContext) -> [NSManagedObject] {
            (0..<8).map { number in
                let object = self == .photos ? Photo(context: context) : Venue(context: context)
                object.setValue("\(number)", forKey: self == .photos ? "title" : "name")
                return object
            }
        }

        func isInverse(_ owner: NSManagedObject, of object: NSManagedObject) -> Bool {
            switch object {
            case let photo as Photo: photo.venue === owner
            case let venue as Venue: venue.fans.contains { $0 === owner }
            default: false
            }
        }
    }

    /// Tries each change on a separate owner, and reads all of them once they are saved.
    private func tryChanges(
        _ kind: StoreKind,
        _ relationship: Ordered,
        isStored: Bool,
        _ set: @escaping (NSManagedObject) throws -> NSMutableOrderedSet
    ) throws {
        let stack = try Stack(kind)
        let context = stack.context()
        let key = relationship.rawValue
        let ids: [NSManagedObjectID] = try context.performAndWait {
            let all = Self.orderedChanges.map { _ in (relationship.owner(context), relationship.objects(context)) }
            for (owner, objects) in all { owner.setValue(Array(objects[..<5]), forKey: key) }
            if isStored {
                try context.save()
                context.refreshAllObjects()
            }
            for ((owner, objects), (name, change, after)) in zip(all, Self.orderedChanges) {
                let proxy = try set(owner)
                change(proxy, objects)
                // Each of these looks another way.
                expectEqual(proxy.map(Self.number), after, "\(name): the set itself")
                expectEqual((owner.value(forKey: key) as? NSOrderedSet)?.array.map(Self.number), after, "\(name)")
                let inverse = objects.filter { relationship.isInverse(owner, of: $0) }
                expectEqual(inverse.map(Self.number), after.sorted(), "\(name): the inverse")
            }
            try context.save()
            return all.map(\.0.objectID)
        }
        let second = stack.context()
        try second.performAndWait {
            for (id, (name, _, after)) in zip(ids, Self.orderedChanges) {
                let owner = try second.existingObject(with: id)
                expectEqual(
                    (owner.value(forKey: key) as? NSOrderedSet)?.array.map(Self.number),
                    after,
                    "\(name): stored"
                )
            }
        }
    }

    @Test(arguments: StoreKind.allCases, Ordered.allCases)
    func `each member of a mutable ordered set changes its relationship`(_ kind: StoreKind, _ key: Ordered) throws {
        for isStored in [false, true] {
            try tryChanges(kind, key, isStored: isStored) { $0.mutableOrderedSetValue(forKey: key.rawValue) }
        }
    }

    @Test(arguments: StoreKind.allCases, Ordered.allCases)
    func `the value of an ordered relationship can be changed by each member`(_ kind: StoreKind, _ key: Ordered) throws
    {
        try tryChanges(kind, key, isStored: true) {
            try require($0.value(forKey: key.rawValue) as? NSMutableOrderedSet)
        }
    }

    @Test(arguments: StoreKind.allCases, Ordered.allCases)
    func `each member that reads shows what others have changed while the set was held`(
        _ kind: StoreKind,
        _ key: Ordered
    ) throws {
        let stack = try Stack(kind)
        try stack.inContext { context throws in
            for (name, read) in Self.orderedReads {
                let (owner, objects) = (key.owner(context), key.objects(context))
                owner.setValue(Array(objects[..<5]), forKey: key.rawValue)
                let proxy = owner.mutableOrderedSetValue(forKey: key.rawValue)
                let plain = NSOrderedSet(array: Array(objects[..<5]))
                expectEqual(read(proxy, objects), read(plain, objects), "\(name)")
                owner.add(objects[5], toRelationshipNamed: key.rawValue)
                owner.remove(objects[0], fromRelationshipNamed: key.rawValue)
                expectEqual(read(proxy, objects), read(NSOrderedSet(array: Array(objects[1..<6])), objects), "\(name)")
                owner.setValue([objects[7], objects[2], objects[6]], forKey: key.rawValue)
                let third = NSOrderedSet(array: [objects[7], objects[2], objects[6]])
                expectEqual(read(proxy, objects), read(third, objects), "\(name), all replaced")
            }
            try context.save()
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `each member of a mutable set changes its relationship`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        for isStored in [false, true] {
            let context = stack.context()
            let ids: [NSManagedObjectID] = try context.performAndWait {
                let all = Self.unorderedChanges.map { _ in (Venue(context: context), Self.tags(context)) }
                for (owner, tags) in all { owner.tags = Set(tags[..<5]) }
                if isStored {
                    try context.save()
                    context.refreshAllObjects()
                }
                for ((owner, tags), (name, change, after)) in zip(all, Self.unorderedChanges) {
                    let proxy = owner.mutableSetValue(forKey: "tags")
                    change(proxy, tags)
                    expectEqual(proxy.map(Self.number).sorted(), after, "\(name): the set itself")
                    expectEqual(owner.tags.map(Self.number).sorted(), after, "\(name)")
                    let inverse = tags.filter { $0.venues.contains(owner) }
                    expectEqual(inverse.map(Self.number), after, "\(name): the inverse")
                }
                try context.save()
                return all.map(\.0.objectID)
            }
            let second = stack.context()
            try second.performAndWait {
                for (id, (name, _, after)) in zip(ids, Self.unorderedChanges) {
                    let owner: Venue = try second.get(id)
                    expectEqual(owner.tags.map(Self.number).sorted(), after, "\(name): stored")
                }
            }
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `each member of a mutable set that reads shows the relationship`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        try stack.inContext { context throws in
            for (name, read) in Self.unorderedReads {
                let owner = Venue(context: context)
                let tags = Self.tags(context)
                owner.tags = Set(tags[..<5])
                let proxy = owner.mutableSetValue(forKey: "tags")
                expectEqual(read(proxy, tags), read(NSSet(array: Array(tags[..<5])), tags), "\(name)")
                tags[5].venues = [owner]
                tags[0].venues = []
                expectEqual(read(proxy, tags), read(NSSet(array: Array(tags[1..<6])), tags), "\(name)")
            }
            try context.save()
        }
    }

    private static func tags(_ context: NSManagedObjectContext) -> [TestSupport.Tag] {
        (0..<8).map { number in
            let tag = TestSupport.Tag(context: context)
            tag.title = "\(number)"
            return tag
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a set at the end of a path changes the relationship, and one that leads nowhere is empty`(
        _ kind: StoreKind
    ) throws {
        let stack = try Stack(kind)
        try stack.inContext { context throws in
            let licence = Licence(context: context)
            let venue = Venue(context: context)
            venue.licence = licence
            let photo = Photo(context: context)
            licence.mutableOrderedSetValue(forKeyPath: "venue.photos").add(photo)
            expectEqual(venue.photos, [photo])
            expectEqual(photo.venue, venue)
            expectEqual(venue.mutableOrderedSetValue(forKeyPath: "photos").count, 1)
            venue.licence = nil
            let nowhere = licence.mutableOrderedSetValue(forKeyPath: "venue.photos")
            expectEqual(nowhere.count, 0)
            nowhere.remove(photo)
            nowhere.addObjects(from: [])
            expectEqual(nowhere.array.count, 0)
        }
    }
}
