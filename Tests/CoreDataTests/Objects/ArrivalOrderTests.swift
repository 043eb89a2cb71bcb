import CoreData
import Expectations
import TestSupport
import Testing

/// Members that come to an ordered relationship through their inverse, while nothing has read it.
///
/// They come behind the stored members, in the order in which they came, whatever happens before the relationship is
/// read.
@Suite("Members that come to an ordered relationship that is not read")
struct ArrivalOrderTests {
    /// An event between the arrivals and the first read.
    enum Event: CaseIterable {
        case nothing, endOfEvent, permanentIDs, someIDs, ownerIsRead, ownerIsRefreshed, save, childSave
    }

    /// A venue with one photo, and a context with the venue as a fault.
    private func scene(_ kind: StoreKind) throws -> (stack: Stack, id: NSManagedObjectID) {
        let stack = try Stack(kind)
        let id = try stack.store(Venue.self) { venue, context in
            let photo = Photo(context: context)
            photo.title = "stored"
            venue.photos = [photo]
        }
        return (stack, id)
    }

    @Test(arguments: StoreKind.allCases, Event.allCases)
    func `have the order in which they came, whatever happens before the first read`(_ kind: StoreKind, _ event: Event)
        throws
    {
        let (stack, id) = try scene(kind)
        let root = stack.context()
        let context = event == .childSave ? NSManagedObjectContext(.privateQueue) : root
        if event == .childSave { context.parent = root }
        let wanted = ["stored", "3", "1", "0", "2"]
        try context.performAndWait {
            let venue = try context.get(id, Venue.self)
            let photos = (0..<4).map { number in
                let photo = Photo(context: context)
                photo.title = "\(number)"
                return photo
            }
            // Neither the order in which they were made nor its reverse.
            for number in [3, 1, 0, 2] { photos[number].venue = venue }
            switch event {
            case .nothing: break
            case .endOfEvent: context.processPendingChanges()
            case .permanentIDs: try context.obtainPermanentIDs(for: photos)
            case .someIDs: try context.obtainPermanentIDs(for: [photos[1], photos[2]])
            case .ownerIsRead: expectEqual(venue.name, nil)
            case .ownerIsRefreshed: context.refresh(venue, mergeChanges: true)
            case .save, .childSave: try context.save()
            }
            expectEqual(venue.photos.map { $0.title ?? "" }, wanted)
            try context.save()
            expectEqual(venue.photos.map { $0.title ?? "" }, wanted)
        }
        if event == .childSave {
            try root.performAndWait {
                try expectEqual(root.get(id, Venue.self).photos.map { $0.title ?? "" }, wanted)
                try root.save()
            }
        }
        try expectEqual(stack.read(id, Venue.self) { $0.photos.map { $0.title ?? "" } }, wanted)
        try expectEqual(stack.problems(), [])
    }

    /// Owners with permanent and temporary IDs whose keys take turns.
    @Test(arguments: StoreKind.allCases)
    func `stay with their owners, though some of these get permanent IDs`(_ kind: StoreKind) throws {
        let (stack, id) = try scene(kind)
        let context = stack.context()
        try context.performAndWait {
            let venues = [try context.get(id, Venue.self), Venue(context: context), Venue(context: context)]
            for (number, venue) in venues.enumerated() { venue.name = "\(number)" }
            let photos = (0..<6).map { number in
                let photo = Photo(context: context)
                photo.title = "\(number)"
                return photo
            }
            for number in [5, 0, 4, 1, 3, 2] { photos[number].venue = venues[number % 3] }
            try context.obtainPermanentIDs(for: [venues[1], photos[0], photos[4]])
            func titles() -> [[String]] { venues.map { $0.photos.map { $0.title ?? "" } } }
            let wanted = [["stored", "0", "3"], ["4", "1"], ["5", "2"]]
            expectEqual(titles(), wanted)
            try context.save()
            expectEqual(titles(), wanted)
        }
        try expectEqual(
            stack.all(Venue.self) { "\($0.name ?? ""): \($0.photos.map { $0.title ?? "" }.joined(separator: " "))" },
            ["0: stored 0 3", "1: 4 1", "2: 5 2"]
        )
    }
}
