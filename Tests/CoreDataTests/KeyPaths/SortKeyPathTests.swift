import CoreData
import Expectations
import TestSupport
import Testing

@Suite("Sorting by Swift key paths")
struct SortKeyPathTests {
    @Test func `a key path of any type becomes a key`() {
        expectEqual(NSSortDescriptor(keyPath: \Venue.price, ascending: true).key, "price")
        expectEqual(NSSortDescriptor(keyPath: \Venue.name, ascending: false).key, "name")
        expectEqual(NSSortDescriptor(keyPath: \Venue.favorite, ascending: false).key, "favorite")
        expectEqual(NSSortDescriptor(keyPath: \Venue.city?.name, ascending: true).key, "city.name")
        expectEqual(NSSortDescriptor(keyPath: \Venue.city!.name, ascending: true).key, "city.name")
        expectEqual(NSSortDescriptor(keyPath: \Bar.price, ascending: true).key, "price")
        expectEqual(NSSortDescriptor(keyPath: \Venue.price, ascending: true).selector, .compare)
        expect(!NSSortDescriptor(keyPath: \Venue.price, ascending: false).ascending)
    }

    @Test func `the reverse and the copy keep the key`() throws {
        let descriptor = NSSortDescriptor(keyPath: \Venue.price, ascending: true)
        let reversed = try require(descriptor.reversedSortDescriptor as? NSSortDescriptor)
        expectEqual(reversed.key, "price")
        expect(!reversed.ascending)
        expectEqual((descriptor.copy() as? NSSortDescriptor)?.key, "price")
    }

    @Test func `a selector may be given`() {
        let descriptor = NSSortDescriptor(keyPath: \Venue.name, ascending: true, selector: .localizedStandardCompare)
        expectEqual(descriptor.key, "name")
        expectEqual(descriptor.selector, .localizedStandardCompare)
    }

    @Test func `a Swift sort descriptor becomes one with a key`() {
        let forward = NSSortDescriptor(SortDescriptor(\Venue.city?.name))
        expectEqual(forward.key, "city.name")
        expect(forward.ascending)
        let reverse = NSSortDescriptor(SortDescriptor(\Venue.name, comparator: .lexical, order: .reverse))
        expectEqual(reverse.key, "name")
        expect(!reverse.ascending)
        expectEqual(reverse.selector, .compare)
    }

    @Test func `a comparator has no key for a store`() throws {
        let descriptor = NSSortDescriptor(keyPath: \Venue.price, ascending: true) { _, _ in .orderedSame }
        expectEqual(descriptor.key, nil)
        expectEqual(descriptor.selector, nil)

        let stack = try Stack(.memory)
        let context = stack.context()
        let request = NSFetchRequest<Venue>(entityName: "Venue")
        request.sortDescriptors = [descriptor]
        context.performAndWait { () -> Void in
            #expect(throws: (any Error).self) { try context.fetch(request) }
        }
    }

    @Test func `objects in memory are sorted too`() throws {
        let stack = try Stack(.memory)
        let context = stack.context()
        context.performAndWait {
            let cheap = Venue(context: context)
            cheap.price = 3
            let dear = Venue(context: context)
            dear.price = 30
            dear.name = "dear"
            let byPrice = NSSortDescriptor(keyPath: \Venue.price, ascending: true)
            expectEqual(byPrice.compare(cheap, to: dear), .orderedAscending)
            expectEqual(byPrice.compare(dear, to: cheap), .orderedDescending)
            let byName = NSSortDescriptor(keyPath: \Venue.name, ascending: false)
            expectEqual(byName.compare(cheap, to: dear), .orderedDescending)
            let byCode = NSSortDescriptor(keyPath: \Venue.price, ascending: true) { left, right in
                let left = left as? Int16 ?? 0
                let right = right as? Int16 ?? 0
                return left % 10 < right % 10 ? .orderedAscending : .orderedDescending
            }
            expectEqual(byCode.compare(cheap, to: dear), .orderedDescending)
        }
    }

    @Test func `a fetch is sorted by them`() throws {
        let stack = try Stack(.memory)
        let context = stack.context()
        try context.performAndWait {
            for (city, names) in [("Porto", ["b", "a"]), ("Lisbon", ["d", "c"])] {
                let place = City(context: context)
                place.name = city
                for name in names {
                    let venue = Venue(context: context)
                    venue.name = name
                    venue.city = place
                }
            }
            _ = Venue(context: context)
            try context.save()

            let request = NSFetchRequest<Venue>(entityName: "Venue")
            request.sortDescriptors = [
                NSSortDescriptor(keyPath: \Venue.city?.name, ascending: true),
                NSSortDescriptor(SortDescriptor(\Venue.name, order: .reverse)),
            ]
            try expectEqual(context.fetch(request).map(\.name), [nil, "d", "c", "b", "a"])
        }
    }
}
