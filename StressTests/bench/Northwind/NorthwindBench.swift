import CoreData
import Synchronization

/// Fetches all orders of Northwind and reads all of their values, in each form in turn.
///
/// Others have published figures for this work. The raw forms are what an exact program does with the C API; their
/// connection has the settings of the framework's.
final class NorthwindBench {
    static let seed: UInt64 = 20_261_127
    private static let batchSize = 1000
    /// Rounds that are not counted: they fill caches and let the process get its memory.
    private static let warmUp = 3

    private let options: BenchOptions
    private let database: RawDatabase
    private let select: RawStatement
    /// A coordinator for each form, so that none finds rows in its cache that another holds.
    private var stacks: [NorthwindForm: FrameworkSide.Stack] = [:]
    /// The objects of the form that keeps them, so that the next round finds them in the context.
    private var kept: [NorthwindOrder] = []

    private init(_ options: BenchOptions, in folder: String) throws {
        self.options = options
        let data = NorthwindData(seed: Self.seed)
        let path = folder + "/raw.sqlite"
        try data.fill(try RawDatabase(path: path))
        database = try RawDatabase(path: path, for: .reading)
        let names = NorthwindData.orderColumns.map { "\"\($0.name)\"" }.joined(separator: ", ")
        select = try database.prepare("SELECT \(names) FROM \"Order\"")
        let model = data.model()
        let filled = try FrameworkSide.Stack(folder + "/framework.sqlite", model)
        try data.fill(filled)
        filled.close()
        for form in options.forms where form.usesFramework {
            stacks[form] = try FrameworkSide.Stack(folder + "/framework.sqlite", model)
        }
    }

    private func close() {
        kept = []
        for stack in stacks.values { stack.close() }
    }

    /// Measures, and calls `report` with the figures of each form, the raw one that all others are compared with first.
    static func run(_ options: BenchOptions, report: (NorthwindFigures) throws -> Void) throws {
        let folder = options.folder + "/strata-bench-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let bench = try NorthwindBench(options, in: folder)
        defer { bench.close() }
        let times = try bench.times()
        for (form, durations) in zip(options.forms, times) {
            try report(NorthwindFigures(form: form, durations: durations, base: times[0]))
        }
    }

    /// The times of each form.
    private func times() throws -> [[Duration]] {
        let forms = options.forms
        var times: [[Duration]] = forms.map { _ in [] }
        for round in 0..<(Self.warmUp + options.runs) {
            var checksums = forms.map { _ in 0 }
            // Another form begins each round, so that none always profits from what another left in the caches.
            for number in forms.indices.map({ ($0 + round) % forms.count }) {
                let sample = try read(forms[number])
                checksums[number] = sample.checksum
                if round >= Self.warmUp { times[number].append(sample.duration) }
            }
            guard Set(checksums).count == 1 else {
                throw BenchError("The forms have read different values: \(checksums)")
            }
        }
        return times
    }

    private func read(_ form: NorthwindForm) throws -> Sample {
        switch form {
        case .structures: try readStructures()
        case .classes: try readClasses()
        case .newContext: try readObjects()
        case .keptContext: try readKeptObjects()
        case .batches: try readBatches()
        case .rows: try readRows(.rows) { row in checksum(ofOrder: { row[$0] }) }
        case .typedRows: try readRows(.typedRows, checksum(ofRow:))
        case .plainDictionaries: try readPlainDictionaries()
        case .dictionaries: try readDictionaries()
        }
    }

    // MARK: - The C API

    private func readStructures() throws -> Sample {
        var orders: [PlainOrder] = []
        return try Sample.measuring {
            while try select.step() { orders.append(PlainOrder(select)) }
            select.reset()
            return orders.reduce(0) { $0 &+ $1.checksum }
        }
    }

    private func readClasses() throws -> Sample {
        var orders: [PlainOrderObject] = []
        return try Sample.measuring {
            while try select.step() { orders.append(PlainOrderObject(select)) }
            select.reset()
            return orders.reduce(0) { $0 &+ $1.values.checksum }
        }
    }

    /// Dictionaries with the values that those of the framework have, made as code without it would make them.
    private func readPlainDictionaries() throws -> Sample {
        var orders: [[String: Any]] = []
        return try Sample.measuring {
            while try select.step() { orders.append(PlainOrder.values(select)) }
            select.reset()
            return orders.reduce(0) { sum, order in sum &+ checksum(ofOrder: { order[$0] }) }
        }
    }

    // MARK: - Strata

    private static var request: NSFetchRequest<NorthwindOrder> { NSFetchRequest<NorthwindOrder>(entityName: "Order") }

    private func newContext(_ form: NorthwindForm) -> NSManagedObjectContext {
        let context = NSManagedObjectContext(concurrencyType: .privateQueueConcurrencyType)
        context.persistentStoreCoordinator = stacks[form]?.coordinator
        return context
    }

    private func readObjects() throws -> Sample {
        var orders: [NorthwindOrder] = []
        return try Sample.measuring {
            let context = newContext(.newContext)
            return try context.performAndWait {
                orders = try context.fetch(Self.request)
                return orders.reduce(0) { $0 &+ $1.checksum }
            }
        }
    }

    private func readKeptObjects() throws -> Sample {
        guard let context = stacks[.keptContext]?.context else { throw BenchError("There is no stack") }
        return try Sample.measuring {
            try context.performAndWait {
                kept = try context.fetch(Self.request)
                return kept.reduce(0) { $0 &+ $1.checksum }
            }
        }
    }

    private func readBatches() throws -> Sample {
        try Sample.measuring {
            let context = newContext(.batches)
            return try context.performAndWait {
                let request = Self.request
                request.fetchBatchSize = Self.batchSize
                return try context.batchedResults(for: request).reduce(0) { $0 &+ $1.checksum }
            }
        }
    }

    private func readRows(
        _ form: NorthwindForm,
        _ checksum: @escaping @Sendable (FetchedRow) -> Int
    ) throws -> Sample {
        try Sample.measuring {
            // The sequence is one for any thread; the loop over it is asynchronous, and this thread waits for it.
            let batches = newContext(form).rows(for: Self.request, batchSize: Self.batchSize)
            let result = Mutex<Result<Int, any Error>>(.success(0))
            let isDone = DispatchSemaphore(value: 0)
            Task.detached {
                do {
                    var sum = 0
                    for try await batch in batches {
                        for row in batch { sum &+= checksum(row) }
                    }
                    let total = sum
                    result.withLock { $0 = .success(total) }
                } catch {
                    result.withLock { $0 = .failure(error) }
                }
                isDone.signal()
            }
            isDone.wait()
            return try result.withLock { try $0.get() }
        }
    }

    private func readDictionaries() throws -> Sample {
        var orders: [[String: Any]] = []
        return try Sample.measuring {
            let context = newContext(.dictionaries)
            return try context.performAndWait {
                let request = NSFetchRequest<[String: Any]>(entityName: "Order")
                request.resultType = .dictionaryResultType
                request.propertiesToFetch = NorthwindData.orderColumns.map(\.name)
                orders = try context.fetch(request)
                return orders.reduce(0) { sum, order in sum &+ checksum(ofOrder: { order[$0] }) }
            }
        }
    }
}
