import CoreData
import TestSupport

/// An instrument that keeps the events that it gets.
struct EventLog: CoreDataInstrument {
    private let events = Shared<[CoreDataEvent]>([])

    func record(_ event: CoreDataEvent) { events.update { $0.append(event) } }

    var all: [CoreDataEvent] { events.current }
    var kinds: [CoreDataEvent.Kind] { all.map(\.kind) }

    func of(_ kind: CoreDataEvent.Kind) -> [CoreDataEvent] { all.filter { $0.kind == kind } }

    func clear() { events.update { $0 = [] } }
}

extension Stack {
    /// A stack whose coordinator reports its work to a log.
    convenience init(_ kind: StoreKind, _ log: EventLog, options: [AnyHashable: Any]? = nil) throws {
        try self.init(kind, model: GuideModel.make(), options: options)
        coordinator.instrument = log
    }

    /// Stores cities and gives their IDs.
    @discardableResult
    func addCities(_ names: [String]) throws -> [NSManagedObjectID] {
        let context = context("adding")
        return try context.performAndWait { () throws in
            let cities = names.map { name in
                let city = City(context: context)
                city.name = name
                return city
            }
            try context.save()
            return cities.map(\.objectID)
        }
    }
}

/// Cities, by name.
func citiesRequest() -> NSFetchRequest<City> {
    let request = NSFetchRequest<City>(entityName: "City")
    request.sortDescriptors = [NSSortDescriptor(key: "name", ascending: true)]
    return request
}
