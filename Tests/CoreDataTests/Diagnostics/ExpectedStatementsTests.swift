import CoreData
import Expectations
import TestSupport
import Testing

@Suite("Expected statements")
struct ExpectedStatementsTests {
    init() { SeenReads.start() }

    @Test(arguments: StoreKind.allCases)
    func `code that keeps to the expectation returns its result`(kind: StoreKind) throws {
        let stack = try repeatedReadsGuide(kind)
        let context = stack.context()
        let names = try stack.coordinator.expectStatements(atMost: 2) {
            try context.performAndWait { () throws in
                try context.fetch(twelveVenues(prefetching: ["city"])).map { $0.city?.name ?? "" }
            }
        }
        expectEqual(names.count, 12)
        try stack.coordinator.expectStatements(atMost: 0) {}
    }

    @Test(arguments: StoreKind.allCases)
    func `asynchronous code is expected to keep to it as well`(kind: StoreKind) async throws {
        let stack = try repeatedReadsGuide(kind)
        let context = stack.context()
        let count = try await stack.coordinator.expectStatements(atMost: 1) {
            try await context.perform { try context.count(for: twelveVenues()) }
        }
        expectEqual(count, 12)
    }

    @Test(arguments: StoreKind.allCases)
    func `code that reads more throws an error that lists the reads`(kind: StoreKind) throws {
        let stack = try repeatedReadsGuide(kind)
        let context = stack.context()
        do {
            try stack.coordinator.expectStatements(atMost: 3) {
                try context.performAndWait { () throws in
                    for venue in try context.fetch(twelveVenues()) { _ = venue.city?.name }
                }
            }
            expect(Bool(false))
        } catch let error as TooManyStatements {
            expectEqual(error.count, 13)
            expectEqual(error.records.map(\.kind), [.fetch] + Array(repeating: .object, count: 12))
            expect(error.description.contains("ExpectedStatementsTests.swift:"))
            expect(error.description.contains("1 × fetch of Venue where price < ?, 12 × row of one object of City"))
        }
    }

    @Test(arguments: StoreKind.allCases, [0, 1, 3])
    func `as many reads as expected are permitted, and not one more`(kind: StoreKind, limit: Int) async throws {
        let stack = try repeatedReadsGuide(kind)
        let context = stack.context()
        for count in 0...limit + 1 {
            var found: [TooManyStatements?] = [nil, nil]
            do {
                let result = try stack.coordinator.expectStatements(atMost: limit) {
                    try context.performAndWait { () throws in
                        for _ in 0..<count { _ = try context.count(for: twelveVenues()) }
                        return count
                    }
                }
                expectEqual(result, count)
            } catch let error as TooManyStatements { found[0] = error }
            do {
                try await stack.coordinator.expectStatements(atMost: limit) {
                    try await context.perform { for _ in 0..<count { _ = try context.count(for: twelveVenues()) } }
                }
            } catch let error as TooManyStatements { found[1] = error }
            let isTooMany = count > limit
            expectEqual(found.map { $0?.count }, Array(repeating: isTooMany ? count : nil, count: 2), "\(count)")
            expectEqual(found.map { $0?.limit }, Array(repeating: isTooMany ? limit : nil, count: 2), "\(count)")
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `an asynchronous fetch counts once`(kind: StoreKind) async throws {
        let stack = try repeatedReadsGuide(kind)
        let context = stack.context()
        try await stack.coordinator.expectStatements(atMost: 1) {
            _ = try await context.fetch(twelveVenues(), progress: nil)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `the record of an asynchronous fetch names the entity, however the request does`(kind: StoreKind) async throws
    {
        let stack = try repeatedReadsGuide(kind)
        let (context, events) = (stack.context(), Shared<[String?]>([]))
        stack.coordinator.instrument = EntityLog(events)
        for form in 0..<3 {
            let request: NSFetchRequest<Venue> =
                switch form {
                case 0: NSFetchRequest(entityName: "Venue")
                case 1: Venue.fetchRequest()
                default: NSFetchRequest()
                }
            if form == 2 { request.entity = stack.coordinator.managedObjectModel.entitiesByName["Venue"] }
            request.predicate = NSPredicate(format: "price < 50")
            let error = await expectThrows(TooManyStatements.self) {
                try await stack.coordinator.expectStatements(atMost: 0) {
                    _ = try await context.fetch(request, progress: nil)
                }
            }
            expectEqual(error?.records.map(\.description), ["fetch of Venue where price < ?"], "\(form)")
        }
        expectEqual(events.current, ["Venue", "Venue", "Venue"])
    }

    @Test(arguments: StoreKind.allCases)
    func `the error of the code comes before that of the expectation`(kind: StoreKind) throws {
        let stack = try repeatedReadsGuide(kind)
        let context = stack.context()
        struct Stop: Error {}
        expectThrows(Stop.self) {
            try stack.coordinator.expectStatements(atMost: 0) {
                _ = try context.performAndWait { () throws in try context.fetch(twelveVenues()) }
                throw Stop()
            }
        }
    }
}

/// Notes the entities of asynchronous fetches.
private final class EntityLog: CoreDataInstrument {
    private let entities: Shared<[String?]>

    init(_ entities: Shared<[String?]>) { self.entities = entities }

    func record(_ event: CoreDataEvent) {
        if event.kind == .asynchronousFetch { entities.update { $0.append(event.entity) } }
    }
}
