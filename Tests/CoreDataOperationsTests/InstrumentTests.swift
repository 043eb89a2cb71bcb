import CoreData
import Expectations
import TestSupport
import Testing

@Suite("Instruments")
struct InstrumentTests {
    private let log = EventLog()

    @Test(arguments: StoreKind.allCases)
    func `a save and a fetch are reported with their rows, context and entity`(kind: StoreKind) throws {
        let stack = try Stack(kind, log)
        try stack.addCities(["Faro", "Porto"])
        let context = stack.context("reading")
        try context.performAndWait { () throws in
            let request = citiesRequest()
            request.predicate = NSPredicate(format: "name == %@", "Porto")
            try expectEqual(context.fetch(request).count, 1)
            try expectEqual(context.count(for: citiesRequest()), 2)
        }
        let save = try require(log.of(.save).first)
        expect(save.rows == 2 && save.context == "adding" && save.duration > .zero && save.errorCode == nil)
        let fetches = log.of(.fetch)
        expectEqual(fetches.map(\.rows), [1, 2])
        expect(fetches.allSatisfy { $0.context == "reading" && $0.entity == "City" && $0.duration > .zero })
        expectEqual(log.of(.contextWait).map(\.context), ["adding", "reading"])
    }

    @Test(arguments: StoreKind.databases)
    func `a fetch has its statement without values, and the time of the store`(kind: StoreKind) throws {
        let stack = try Stack(kind, log)
        try stack.addCities(["Faro"])
        let context = stack.context()
        try context.performAndWait { () throws in
            let request = citiesRequest()
            request.predicate = NSPredicate(format: "name == %@", "Faro")
            _ = try context.fetch(request)
        }
        let fetch = try require(log.of(.fetch).first)
        let statement = try require(fetch.statement)
        let placeholder = kind == .postgreSQL ? "$1" : "?"
        expect(statement.contains("WHERE") && statement.contains(placeholder) && !statement.contains("Faro"))
        expect(fetch.storeTime > .zero && fetch.storeTime <= fetch.duration)
    }

    @Test(arguments: StoreKind.allCases)
    func `a fault is reported if the row cache cannot fill it, and only then`(kind: StoreKind) throws {
        let stack = try Stack(kind, log)
        let ids = try stack.addCities(["Faro"])
        let store = try require(stack.coordinator.openStores.first)
        store.cache.removeAll()
        log.clear()
        for _ in 1...2 {
            let context = stack.context("faulting")
            try context.performAndWait { () throws in
                let city = try require(try context.existingObject(with: ids[0]) as? City)
                expectEqual(city.name, "Faro")
            }
        }
        expectEqual(log.of(.fault).map(\.rows), [1])
        let fault = try require(log.of(.fault).first)
        expect(fault.entity == "City" && fault.duration > .zero)
        expectEqual(fault.storeTime, kind == .memory ? .zero : fault.duration)
    }

    @Test(arguments: StoreKind.allCases)
    func `a conflict, its error and the retry are reported`(kind: StoreKind) throws {
        let stack = try Stack(kind, log)
        let ids = try stack.addCities(["Faro"])
        let (first, second) = (stack.context("first"), stack.context("second"))
        var runs = 0
        try first.performAndWait(retrying: 3) { () throws in
            runs += 1
            let city = try require(try first.existingObject(with: ids[0]) as? City)
            city.population += 1
            guard runs == 1 else { return }
            try second.performAndWait { () throws in
                let city = try require(try second.existingObject(with: ids[0]) as? City)
                city.population += 10
                try second.save()
            }
        }
        expectEqual(runs, 2)
        expectEqual(log.of(.conflict).map(\.rows), [1])
        expectEqual(log.of(.retry).map(\.context), ["first"])
        expectEqual(log.of(.save).compactMap(\.errorCode), [NSManagedObjectMergeError])
    }

    @Test(arguments: StoreKind.allCases)
    func `a merge, a batch and an asynchronous fetch are reported`(kind: StoreKind) async throws {
        let stack = try Stack(kind, log)
        let following = stack.context("following")
        try following.performAndWait { () throws in
            following.automaticallyMergesChangesFromParent = true
            try expect(following.fetch(citiesRequest()).isEmpty)
        }
        try stack.addCities(["Faro", "Porto"])
        following.performAndWait {}
        let merge = try require(log.of(.merge).first)
        expect(merge.rows == 2 && merge.context == "following")
        let context = stack.context("working")
        let count = try await context.fetch(citiesRequest(), progress: nil) { $0.count }
        expectEqual(count, 2)
        expectEqual(log.of(.asynchronousFetch).map(\.rows), [2])
        expectEqual(log.of(.fetch).count, 1, "the rounds of an asynchronous fetch are no fetches")
        try context.performAndWait { () throws in
            let update = NSBatchUpdateRequest(entityName: "City")
            update.propertiesToUpdate = ["population": 7]
            _ = try context.execute(update)
        }
        let batch = try require(log.of(.batch).first)
        expect(batch.rows == 2 && batch.entity == "City" && batch.context == "working")
    }

    @Test func `a wait for the writer is reported with its duration`() async throws {
        let stack = try Stack(.sqlite, log)
        let (holder, waiter) = (try stack.secondCoordinator(), stack.context("waiting"))
        let gate = Gate()
        let holding = NSManagedObjectContext(.privateQueue)
        holding.persistentStoreCoordinator = holder
        let rows = try require(holder.openStores.first).rows
        let (ends, end) = AsyncStream<Void>.makeStream()
        Thread {
            try? rows.retire { gate.stopOnce() }
            end.finish()
        }.start()
        await gate.arrival()
        let store = try require(stack.coordinator.openStores.first)
        async let saved: Void = waiter.perform {
            City(context: waiter).name = "Faro"
            try waiter.save()
        }
        while store.rows.figures?.waitingWriters == 0 { await Task.yield() }
        expectEqual(stack.coordinator.statistics().stores.first?.pool?.waitingWriters, 1)
        gate.open()
        for await _ in ends {}
        try await saved
        let wait = try require(log.of(.writerWait).first)
        expect(wait.duration > .zero && wait.context == "waiting")
        let save = try require(log.of(.save).first)
        expect(save.storeTime >= wait.duration)
    }

    @Test func `a checkpoint after a commit is reported`() throws {
        let stack = try Stack(.sqlite, log, options: [NSSQLitePragmasOption: ["wal_autocheckpoint": "1"]])
        try stack.addCities((1...100).map { "City \($0)" })
        expect(log.kinds.contains(.checkpoint))
    }

    @Test func `a migration is reported with its file, and with its error if it fails`() throws {
        let old = try Stack(.sqlite)
        try old.addCities(["Faro"])
        try old.coordinator.close()
        func open(_ change: (NSEntityDescription?) -> Void) throws {
            let model = GuideModel.make()
            change(model.entitiesByName["City"])
            let coordinator = NSPersistentStoreCoordinator(managedObjectModel: model)
            coordinator.instrument = log
            let options: [AnyHashable: Any] = [
                NSMigratePersistentStoresAutomaticallyOption: true, NSInferMappingModelAutomaticallyOption: true,
            ]
            try coordinator.addPersistentStore(type: .sqlite, at: old.storeURL, options: options)
            try coordinator.close()
        }
        expectThrows(CocoaError.self) {
            // The old store has no value for this attribute, and the attribute must have one.
            try open { $0?.properties.append(GuideModel.attribute("mayor", .string, optional: false)) }
        }
        try open { $0?.properties.append(GuideModel.attribute("mayor", .string)) }
        let migrations = log.of(.migration)
        expectEqual(migrations.map(\.store), ["store.sqlite", "store.sqlite"])
        expect(migrations.first?.errorCode != nil && migrations.last?.errorCode == nil)
        expect(migrations.allSatisfy { $0.duration > .zero })
    }

    @Test func `without an instrument nothing is reported, and no more once it is removed`() throws {
        let stack = try Stack(.memory, log)
        expect(stack.coordinator.instrument is EventLog)
        stack.coordinator.instrument = nil
        try stack.addCities(["Faro"])
        expect(log.all.isEmpty && stack.coordinator.instrument == nil)
    }

    @Test func `coordinators that come and go take no events from the instrument of another`() throws {
        let stack = try Stack(.memory, log)
        for hasInstrument in [false, false, true, false] {
            let other = try Stack(.memory, model: GuideModel.make())
            if hasInstrument { other.coordinator.instrument = EventLog() }
            // Setting one that is not there, or is there already, changes nothing.
            other.coordinator.instrument = other.coordinator.instrument
        }
        for index in 1...3 { try stack.addCities(["city \(index)"]) }
        expectEqual(log.of(.save).count, 3)
        // The last one that is removed leaves the others.
        let second = EventLog()
        do {
            let other = try Stack(.memory, second)
            try other.addCities(["Faro"])
            other.coordinator.instrument = nil
            other.coordinator.instrument = nil
        }
        try stack.addCities(["Porto"])
        expect(log.of(.save).count == 4 && second.of(.save).count == 1)
    }

    @Test func `several instruments get events in their order`() {
        let second = EventLog()
        CoreDataInstruments(log, second).record(CoreDataEvent(kind: .save, rows: 3))
        expect(log.all.first?.rows == 3 && second.all.first?.rows == 3)
    }
}

@Suite("Instruments that write")
struct WritingInstrumentTests {
    @Test func `Prometheus gets cumulative buckets, sums, rows and errors`() throws {
        let metrics = PrometheusInstrument()
        for milliseconds in [0.05, 0.7, 700] {
            metrics.record(CoreDataEvent(kind: .fetch, duration: .milliseconds(milliseconds), rows: 2))
        }
        metrics.record(CoreDataEvent(kind: .fetch, duration: .seconds(9), errorCode: 134_070))
        let lines = metrics.text().split(separator: "\n").map(String.init)
        expect(lines.contains("coredata_operation_seconds_bucket{kind=\"fetch\",le=\"0.0001\"} 1"))
        expect(lines.contains("coredata_operation_seconds_bucket{kind=\"fetch\",le=\"0.001\"} 2"))
        expect(lines.contains("coredata_operation_seconds_bucket{kind=\"fetch\",le=\"1.0\"} 3"))
        expect(lines.contains("coredata_operation_seconds_bucket{kind=\"fetch\",le=\"+Inf\"} 4"))
        expect(lines.contains("coredata_operation_seconds_count{kind=\"fetch\"} 4"))
        expect(lines.contains("coredata_rows_total{kind=\"fetch\"} 6"))
        expect(lines.contains("coredata_errors_total{kind=\"fetch\"} 1"))
        expect(!lines.contains { $0.contains("kind=\"save\"") })
        expectEqual(metrics.count(of: .fetch), 4)
    }

    @Test(arguments: StoreKind.allCases)
    func `Prometheus gets the gauges of a coordinator`(kind: StoreKind) throws {
        let stack = try Stack(kind)
        try stack.addCities(["Faro"])
        let context = stack.context()
        let statistics = stack.coordinator.statistics()
        let text = PrometheusInstrument().text(statistics)
        let store = try require(statistics.stores.first)
        var gauges: [(name: String, value: String?)] = [
            ("row_cache_rows", "\(store.cachedRows)"), ("row_cache_bytes", "\(store.cachedBytes)"),
            ("row_cache_hits_total", "\(store.cacheHits)"), ("row_cache_misses_total", "\(store.cacheMisses)"),
        ]
        let pool = store.pool
        gauges += [
            ("pool_readers", pool.map { "\($0.readers)" }),
            ("pool_readers_waiting", pool.map { "\($0.waitingReaders)" }),
            ("pool_writers_waiting", pool.map { "\($0.waitingWriters)" }),
            ("pinned_versions", pool.map { "\($0.pinnedVersions)" }), ("file_bytes", pool.map { "\($0.fileSize)" }),
            ("log_bytes", pool.map { "\($0.logSize)" }),
        ]
        var expected = [
            "# TYPE coredata_operation_seconds histogram", "# TYPE coredata_rows_total counter",
            "# TYPE coredata_errors_total counter", "# TYPE coredata_contexts gauge", "coredata_contexts 1",
        ]
        for case (let name, let value?) in gauges {
            expected.append("# TYPE coredata_\(name) \(name.hasSuffix("_total") ? "counter" : "gauge")")
            expected.append("coredata_\(name){store=\"\(store.name)\"} \(value)")
        }
        expectEqual(text.split(separator: "\n").map(String.init), expected)
        expectEqual(pool == nil, kind == .memory)
        withExtendedLifetime(context) {}
    }

    @Test func `slow events and errors become one line of JSON each, and nothing else does`() throws {
        let lines = Shared<[String]>([])
        let instrument = SlowEventLines(from: .milliseconds(100)) { line in lines.update { $0.append(line) } }
        instrument.record(CoreDataEvent(kind: .fetch, duration: .milliseconds(99)))
        instrument.record(
            CoreDataEvent(
                kind: .fetch,
                duration: .milliseconds(250),
                storeTime: .milliseconds(200),
                rows: 7,
                context: "a \"quoted\"\nname",
                entity: "City",
                statement: "SELECT 1"
            )
        )
        instrument.record(CoreDataEvent(kind: .save, duration: .milliseconds(1), errorCode: 133_020))
        instrument.record(CoreDataEvent(kind: .save, duration: .milliseconds(1), errorCode: 134_030))
        expectEqual(lines.current.count, 2)
        let object = try JSONSerialization.jsonObject(with: Data(lines.current[0].utf8))
        let members = try require(object as? [String: Any])
        expect(members["kind"] as? String == "fetch" && members["rows"] as? Int == 7)
        expect(members["ms"] as? Double == 250 && members["storeMs"] as? Double == 200)
        expect(members["context"] as? String == "a \"quoted\"\nname" && members["statement"] as? String == "SELECT 1")
        expect(lines.current[1].contains("\"error\":134030") && !lines.current.contains { $0.contains("\n") })
    }
}
