import CoreData
import Expectations
import TestSupport
import Testing

@Suite("Trees: ordered relationships", .serialized)
struct TreeOrderTests {
    @Test func `removing many members of an ordered relationship costs the parent what there are, not their square`()
        throws
    {
        let stack = try Stack(.memory)
        func save(_ count: Int) throws -> Duration {
            let venue = try stack.store(Venue.self) { venue, context in
                venue.photos = (0..<count).map { number in
                    let photo = Photo(context: context)
                    photo.title = "\(number)"
                    return photo
                }
            }
            let (parent, child) = stack.pair()
            return try child.performAndWait {
                let object = try child.get(venue, Venue.self)
                object.photos = object.photos.enumerated().filter { $0.offset % 2 == 1 }.map(\.element)
                let time = try processorTime { try child.save() }
                let titles = try parent.performAndWait { try parent.get(venue, Venue.self).photos.map(\.title) }
                expectEqual(titles, (0..<count).filter { $0 % 2 == 1 }.map { "\($0)" })
                return time
            }
        }
        _ = try save(100)
        // Eight times as many; the square would be sixty-four times.
        try expectGrowth(below: 30, from: { try save(2_000) }, to: { try save(16_000) })
    }

    @Test(arguments: StoreKind.allCases)
    func `an order that a child saves keeps what its parent has added meanwhile`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let venue = try stack.store(Venue.self) { venue, context in
            venue.photos = ["a", "b"].map { title in
                let photo = Photo(context: context)
                photo.title = title
                return photo
            }
        }
        let (parent, child) = stack.pair()
        try child.performAndWait {
            let object = try child.get(venue, Venue.self)
            object.photos = object.photos.reversed()
        }
        try parent.performAndWait {
            let photo = Photo(context: parent)
            photo.title = "c"
            try parent.get(venue, Venue.self).photos.append(photo)
        }
        try child.saveAndWait()
        try expectEqual(parent.look(venue, Venue.self) { $0.photos.map(\.title) }, ["b", "a", "c"])
        try parent.saveAndWait()
        try expectEqual(stack.read(venue, Venue.self) { $0.photos.map(\.title) }, ["b", "a", "c"])
    }
}
