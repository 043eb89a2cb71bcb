import CoreData
import Expectations
import StrataLocks
import TestSupport
import Testing

/// Counts what a coordinator reads for faults, and the repeated reads that it reports.
private struct Reads: CoreDataInstrument {
    struct Counts: Equatable {
        var statements = 0
        var rows = 0
        var reports = 0
    }

    let counts = Shared(Counts())

    func record(_ event: CoreDataEvent) {
        counts.update { counts in
            switch event.kind {
            case .fault:
                counts.statements += 1
                counts.rows += event.rows
            case .repeatedReads: counts.reports += 1
            default: break
            }
        }
    }
}

/// Calls a function after the first fetch.
private struct AfterFetch: CoreDataInstrument {
    let reads = Reads()
    let next: Shared<(@Sendable () -> Void)?>

    init(_ next: @escaping @Sendable () -> Void) { self.next = Shared(next) }

    func record(_ event: CoreDataEvent) {
        reads.record(event)
        guard event.kind == .fetch else { return }
        let now = next.current
        next.update { $0 = nil }
        now?()
    }
}

/// Venues of one store, and another coordinator that changes them.
private struct Rivals {
    static let count = 40
    /// The portions in which so many rows are read again.
    static let portions = (count + WorkSize.renewedRows - 1) / WorkSize.renewedRows
    let stack: Stack
    let other: NSManagedObjectContext

    init(_ kind: StoreKind) throws {
        stack = try Stack(kind)
        let context = stack.context()
        try context.performAndWait {
            for number in 0..<Self.count {
                let (venue, city) = (Venue(context: context), City(context: context))
                (venue.name, venue.price, city.name) = ("Venue \(number)", Int16(number), "City \(number)")
                venue.city = city
            }
            try context.save()
        }
        other = NSManagedObjectContext(.privateQueue)
        other.persistentStoreCoordinator = try stack.secondCoordinator()
        stack.coolDown()
    }

    static func request(prefetching keyPaths: [String] = []) -> NSFetchRequest<Venue> {
        let request = NSFetchRequest<Venue>(entityName: "Venue")
        request.sortDescriptors = [NSSortDescriptor(key: "price", ascending: true)]
        request.relationshipKeyPathsForPrefetching = keyPaths
        return request
    }

    /// Changes the venues elsewhere, and makes a read of this coordinator notice that.
    func change(_ body: (Venue) -> Void = { $0.name = ($0.name ?? "") + "!" }) throws {
        try other.performAndWait {
            for venue in try other.fetch(Self.request()) { body(venue) }
            try other.save()
        }
        let bystander = stack.context()
        try bystander.performAndWait { _ = try bystander.fetch(NSFetchRequest<Photo>(entityName: "Photo")) }
    }
}

@Suite("Rows that others have overtaken after a fetch")
struct OutdatedRowTests {
    @Test(arguments: StoreKind.databases)
    func `they are read again together`(kind: StoreKind) throws {
        let rivals = try Rivals(kind)
        let reads = Reads()
        let context = rivals.stack.context()
        let names = try context.performAndWait {
            let venues = try context.fetch(Rivals.request())
            try rivals.change()
            rivals.stack.coordinator.instrument = reads
            return venues.compactMap(\.name)
        }
        expect(reads.counts.current.statements <= 7 + Rivals.portions, "\(reads.counts.current)")
        // A server reports commits of others a moment later.
        if kind == .sqlite {
            expectEqual(names, (0..<Rivals.count).map { "Venue \($0)!" })
            expect(reads.counts.current.statements > 0)
            expectEqual(reads.counts.current.rows, Rivals.count)
        }
    }

    @Test(arguments: StoreKind.databases)
    func `those that a fetch has read before its prefetch are read again together, and not reported`(kind: StoreKind)
        throws
    {
        let rivals = try Rivals(kind)
        let instrument = AfterFetch { try? rivals.change() }
        let context = rivals.stack.context()
        let names = try context.performAndWait {
            rivals.stack.coordinator.instrument = instrument
            let venues = try context.fetch(Rivals.request(prefetching: ["city"]))
            return venues.map { "\($0.name ?? "") in \($0.city?.name ?? "")" }
        }
        expect(instrument.next.current == nil)
        let counts = instrument.reads.counts.current
        expect(counts.statements <= 7 + 2 * Rivals.portions, "\(counts)")
        expectEqual(counts.reports, 0)
        if kind == .sqlite { expectEqual(names, (0..<Rivals.count).map { "Venue \($0)! in City \($0)" }) }
    }

    @Test(arguments: [false, true])
    func `one row is read at a time if others commit before each read, and that is not reported`(ofCities: Bool) throws
    {
        let rivals = try Rivals(.sqlite)
        let reads = Reads()
        let context = rivals.stack.context()
        let names = try context.performAndWait {
            let venues = try context.fetch(Rivals.request(prefetching: ofCities ? ["city"] : []))
            let cities = ofCities ? venues.map(\.city) : []
            // The venues have their values from here on.
            if ofCities { for venue in venues { _ = venue.name } }
            return try venues.indices.map { index in
                rivals.stack.coordinator.instrument = nil
                try rivals.change {
                    if ofCities { $0.city?.name += "!" } else { $0.name = ($0.name ?? "") + "!" }
                }
                rivals.stack.coordinator.instrument = reads
                return (ofCities ? cities[index]?.name : venues[index].name) ?? ""
            }
        }
        let kind = ofCities ? "City" : "Venue"
        expectEqual(names, (0..<Rivals.count).map { "\(kind) \($0)" + String(repeating: "!", count: $0 + 1) })
        expectEqual(
            reads.counts.current,
            Reads.Counts(statements: Rivals.count, rows: Rivals.count, reports: 0)
        )
    }

    @Test func `a commit between the reads makes them smaller, and loses no value`() throws {
        let rivals = try Rivals(.sqlite)
        let context = rivals.stack.context()
        let prices = try context.performAndWait {
            let venues = try context.fetch(Rivals.request())
            var prices: [Int16] = []
            for (index, venue) in venues.enumerated() {
                if index % 7 == 0 { try rivals.change { $0.price += 100 } }
                prices.append(venue.price)
            }
            return prices
        }
        expectEqual(prices, (0..<Rivals.count).map { Int16($0 + ($0 / 7 + 1) * 100) })
    }

    @Test func `a row that others have deleted is missing, and those beside it are not`() throws {
        let rivals = try Rivals(.sqlite)
        let context = rivals.stack.context()
        context.shouldDeleteInaccessibleFaults = true
        try context.performAndWait {
            let venues = try context.fetch(Rivals.request())
            try rivals.change { venue in
                if venue.price % 3 == 2 {
                    venue.managedObjectContext?.delete(venue)
                } else {
                    venue.name = (venue.name ?? "") + "!"
                }
            }
            for (number, venue) in venues.enumerated() {
                expectEqual(venue.name ?? "", number % 3 == 2 ? "" : "Venue \(number)!")
            }
            for (number, venue) in venues.enumerated() { expectEqual(venue.isDeleted, number % 3 == 2) }
            try expectEqual(context.count(for: Rivals.request()), Rivals.count - Rivals.count / 3)
        }
    }

    @Test func `unsaved changes, and objects that were read before, stay as they are`() throws {
        let rivals = try Rivals(.sqlite)
        let context = rivals.stack.context()
        try context.performAndWait {
            let venues = try context.fetch(Rivals.request())
            venues[1].name = "own"
            _ = venues[3].name
            try rivals.change()
            let names = venues.compactMap(\.name)
            for (number, name) in names.enumerated() {
                expectEqual(name, number == 1 ? "own" : number == 3 ? "Venue 3" : "Venue \(number)!")
            }
        }
        expectThrows(CocoaError.self) { try context.performAndWait { try context.save() } }
    }

    @Test func `a block without lazy reads allows them, and a budget counts each read once`() throws {
        let rivals = try Rivals(.sqlite)
        let (strict, thrifty) = (rivals.stack.context(), rivals.stack.context())
        strict.raisesOnFault = true
        thrifty.statementBudget = 11 + Rivals.portions
        // No other fetch of the block could prevent them.
        let strictNames = try strict.performAndWait {
            let venues = try strict.fetch(Rivals.request())
            try rivals.change()
            return venues.compactMap(\.name)
        }
        expectEqual(strictNames, (0..<Rivals.count).map { "Venue \($0)!" })
        let names = try thrifty.performAndWait {
            let venues = try thrifty.fetch(Rivals.request())
            try rivals.change()
            return venues.compactMap(\.name)
        }
        expectEqual(names, (0..<Rivals.count).map { "Venue \($0)!!" })
    }
}
