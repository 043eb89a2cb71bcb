import CoreData
import Expectations
import Foundation
import StrataSQLite
import Testing

/// A store that several processes use, and the signals with which a test scripts their steps.
///
/// Exit tests pass it to the processes that they start, each of which opens the store by itself.
package struct SharedStore: Codable, Sendable {
    package let folder: String
    package let kind: StoreKind

    package init(folder: String, kind: StoreKind) {
        self.folder = folder
        self.kind = kind
    }

    /// The store's file; on PostgreSQL it stands for a schema.
    package var url: URL { URL(fileURLWithPath: folder).appendingPathComponent("store.sqlite") }

    /// Opens the store in this process.
    package func coordinator(options: [AnyHashable: Any] = [:]) throws -> NSPersistentStoreCoordinator {
        let coordinator = NSPersistentStoreCoordinator(managedObjectModel: GuideModel.make())
        try coordinator.addPersistentStore(type: kind.type, at: url, options: options)
        return coordinator
    }

    /// Opens the store in this process, for one context.
    package func context(_ name: String? = nil, options: [AnyHashable: Any] = [:]) throws -> NSManagedObjectContext {
        let context = NSManagedObjectContext(.privateQueue)
        context.persistentStoreCoordinator = try coordinator(options: options)
        context.name = name
        return context
    }

    /// The same as ``context(_:options:)``, but also saves a city.
    package func contextWithCity(
        _ name: String? = nil,
        population: Int64 = 0,
        options: [AnyHashable: Any] = [:]
    ) async throws -> NSManagedObjectContext {
        let context = try context(name, options: options)
        try await context.perform {
            context.makeCity("Bonn", population: population)
            try context.save()
        }
        return context
    }

    package func size(_ suffix: String) -> Int {
        (try? FileManager.default.attributesOfItem(atPath: url.path + suffix)[.size] as? Int) ?? 0
    }

    /// Ends this process with a signal, in the middle of a transaction that has changed the population of all cities
    /// and added tags.
    package func dieAmidWrite() throws {
        if kind == .sqlite {
            let connection = try Connection(path: url.path, access: .readWrite)
            try connection.execute("PRAGMA cache_size = 1; BEGIN IMMEDIATE; UPDATE ZCITY SET ZPOPULATION = 99")
            // This is more than the cache holds, so that the log already has pages of it.
            for _ in 0..<200 {
                try connection.run("INSERT INTO ZTAG (Z_ENT, Z_OPT, ZTITLE) VALUES (3, 1, hex(zeroblob(2000)))")
            }
            kill(getpid(), SIGKILL)
        }
        #if canImport(CoreDataPostgreSQL)
        let session = try TestDatabase.session(url)
        try session.command(
            """
            BEGIN; UPDATE city SET population = 99;
            INSERT INTO tag SELECT n, 3, 1, 'tag' FROM pg_catalog.generate_series(1000000, 1000200) AS n
            """
        )
        withExtendedLifetime(session) { _ = kill(getpid(), SIGKILL) }
        #endif
    }

    // MARK: - Signals

    /// Gives a signal, which one call of ``wait(for:)`` takes, now or later.
    package func signal(_ name: String) {
        withPipe(name) { pipe in
            _ = [UInt8(1)].withUnsafeBytes { write(pipe, $0.baseAddress, 1) }
        }
    }

    /// Waits for a signal of another process; ends this process if none comes within twenty minutes.
    ///
    /// The limit is long since, in a run of all tests, the step that gives the signal may wait for thousands of
    /// others.
    package func wait(for name: String) {
        withPipe(name) { pipe in
            var entry = pollfd(fd: pipe, events: Int16(POLLIN), revents: 0)
            guard poll(&entry, 1, 1_200_000) == 1 else { fatalError("the signal \(name) never came") }
            var byte: UInt8 = 0
            _ = read(pipe, &byte, 1)
        }
    }

    /// The same as ``wait(for:)`` for the process of the test, whose few threads have to start the other processes.
    package func arrival(of name: String) async {
        await withCheckedContinuation { continuation in
            Thread.detachNewThread {
                wait(for: name)
                continuation.resume()
            }
        }
    }

    fileprivate func pipePath(_ name: String) -> String { folder + "/" + name + ".pipe" }

    /// A pipe that is opened for both directions does not wait for the other side.
    private func withPipe(_ name: String, _ body: (Int32) -> Void) {
        let pipe = open(pipePath(name), O_RDWR)
        precondition(pipe >= 0, "the test has no signal \(name)")
        body(pipe)
        close(pipe)
    }
}

/// The folder of a ``SharedStore``, in the process of the test.
package final class SharedFolder {
    package let store: SharedStore
    /// The pipes stay open, so that a signal outlives the process that has given it.
    private var pipes: [Int32] = []

    /// Makes the folder.
    ///
    /// - Parameters:
    ///   - kind: The kind of store; `.sqlite` in tests of its file.
    ///   - signals: The signals of the test.
    /// - Throws: Errors of the file system.
    package init(_ kind: StoreKind = .database, signals: String...) throws {
        let folder = FileManager.default.temporaryDirectory.path + "/strata-processes-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        store = SharedStore(folder: folder, kind: kind)
        for signal in signals {
            let path = store.pipePath(signal)
            guard mkfifo(path, 0o600) == 0 else { throw POSIXError(.EIO) }
            pipes.append(open(path, O_RDWR))
        }
    }

    deinit {
        for pipe in pipes { close(pipe) }
        if store.kind == .postgreSQL { DatabaseTexts.drop(store.url) }
        try? FileManager.default.removeItem(atPath: store.folder)
    }
}

extension NSManagedObjectContext {
    /// The first city.
    package func city() throws -> City {
        let request = NSFetchRequest<City>(entityName: "City")
        request.sortDescriptors = [NSSortDescriptor(key: "name", ascending: true)]
        request.fetchLimit = 1
        return try require(try fetch(request).first)
    }

    /// The first city, which shows what is stored.
    package func storedCity() throws -> City {
        let city = try city()
        refresh(city, mergeChanges: false)
        return city
    }

    package func makeCity(_ name: String, population: Int64 = 0) {
        let city = City(context: self)
        city.name = name
        city.population = population
    }
}
