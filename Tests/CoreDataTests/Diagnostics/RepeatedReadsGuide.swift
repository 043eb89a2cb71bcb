import CoreData
import Expectations
import TestSupport
import Testing

/// The reports of the log of repeated reads, by the contexts that made the reads.
///
/// The log has one handler for the process, so all tests share it, and tell their reports apart by the contexts' names.
enum SeenReads {
    private static let all = Shared<[RepeatedReads]>([])
    private static let isOn: Bool = {
        RepeatedReadLog.samplingInterval = 1
        RepeatedReadLog.handler = { reads in all.update { $0.append(reads) } }
        return true
    }()

    static func start() { _ = isOn }

    static func of(_ name: String) -> [RepeatedReads] { all.current.filter { $0.context.contains("\"\(name)\"") } }
}

/// A guide with twelve of everything: each venue has its own city, licence, tag and photo, and each user a boss.
func repeatedReadsGuide(_ kind: StoreKind) throws -> Stack {
    let stack = try Stack(kind)
    let context = stack.context("setting up")
    try context.performAndWait { () throws in
        for number in 0..<12 {
            let venue = Venue(context: context)
            venue.name = "Venue \(number)"
            venue.price = Int16(number)
            let city = City(context: context)
            city.name = "City \(number)"
            venue.city = city
            let licence = Licence(context: context)
            licence.number = "\(number)"
            venue.licence = licence
            let tag = Tag(context: context)
            tag.title = "Tag \(number)"
            venue.tags = [tag]
            let photo = Photo(context: context)
            photo.title = "Photo \(number)"
            venue.photos = [photo]
            let (user, boss) = (User(context: context), User(context: context))
            (user.email, user.age) = ("user \(number)", 1)
            (boss.email, boss.age) = ("boss \(number)", 0)
            user.boss = boss
        }
        let crowded = City(context: context)
        crowded.name = "Crowded"
        for number in 0..<12 {
            let venue = Venue(context: context)
            (venue.name, venue.price, venue.city) = ("Crowd \(number)", 100, crowded)
        }
        try context.save()
    }
    stack.coolDown()
    return stack
}

/// The twelve venues that have a city each.
func twelveVenues(prefetching keyPaths: [String] = []) -> NSFetchRequest<Venue> {
    let request = venues("price < %d", 50)
    request.relationshipKeyPathsForPrefetching = keyPaths
    return request
}
