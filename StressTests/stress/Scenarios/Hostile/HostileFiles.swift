import CStrataSQLite
import CoreData
import StrataSQLiteStore
import StrataStoreChecks

/// Store files that are damaged, cut off, of other programs or of another time, and damaged logs.
struct HostileFiles {
    private let run: Run
    /// A sound store.
    private let file: Data
    /// A sound store with its newest transactions in its log.
    ///
    /// Each of them has added 1 to the first number of all nodes.
    private let hot: (file: Data, log: Data)
    /// The first numbers of the nodes by serial number, before those transactions.
    private let firsts: [Int64: Int64]
    private static let logged: Int64 = 12

    /// Makes the sound stores.
    init(_ run: Run) throws {
        self.run = run
        let url = run.folder.appendingPathComponent("template.sqlite")
        let coordinator = NSPersistentStoreCoordinator(managedObjectModel: StressModel.shared)
        try coordinator.addPersistentStore(type: .sqlite, at: url)
        try Hostile.fill(coordinator)
        firsts = try Self.firsts(coordinator.context())
        try run.close(coordinator)
        file = try Data(contentsOf: url)
        var steps = ["PRAGMA wal_autocheckpoint = 0"]
        for _ in 0..<Self.logged { steps.append("UPDATE ZNODE SET ZFIRST = ZFIRST + 1, Z_OPT = Z_OPT + 1") }
        hot = try Self.edit(url, steps) {
            (try Data(contentsOf: url), try Data(contentsOf: URL(fileURLWithPath: url.path + "-wal")))
        }
    }

    private static func firsts(_ context: NSManagedObjectContext) throws -> [Int64: Int64] {
        try context.performAndWait {
            let nodes = try context.fetch(NSFetchRequest<Node>(entityName: "Node"))
            return Dictionary(nodes.map { ($0.serial, $0.first) }) { one, _ in one }
        }
    }

    /// Changes a file without the framework.
    private static func edit<R>(_ url: URL, _ steps: [String], then: () throws -> R) throws -> R {
        var database: OpaquePointer?
        defer { sqlite3_close(database) }
        guard sqlite3_open(url.path, &database) == SQLITE_OK else { throw StressError("\(url.path) cannot be opened") }
        for step in steps where sqlite3_exec(database, step, nil, nil, nil) != SQLITE_OK {
            throw StressError("\(step): \(String(cString: sqlite3_errmsg(database)))")
        }
        return try then()
    }

    // MARK: - Inputs

    /// Opens a file with changed bytes, or one that is cut off anywhere.
    func openDamaged(_ number: Int, _ stream: inout SeededStream) throws {
        var bytes = file
        if stream.chance(0.3) {
            bytes = bytes.prefix(stream.below(bytes.count))
        } else {
            for _ in 0...stream.below(30) { bytes[stream.below(bytes.count)] = UInt8(stream.below(256)) }
        }
        try open(bytes, number, "with damaged bytes")
    }

    /// Opens a file that ends after one of its pages; the page is the next one each time.
    func openCut(_ number: Int) throws {
        let size = Int(file[16]) << 8 + Int(file[17])
        let pages = file.count / max(size, 512)
        let page = number / Hostile.kinds % max(pages, 1)
        try open(file.prefix(page * size), number, "with \(page) of \(pages) pages")
    }

    /// Opens a file with a damaged log.
    ///
    /// It must show the state after some of the transactions, without gaps.
    func openHot(_ number: Int, _ stream: inout SeededStream) throws {
        var log = hot.log
        if stream.chance(0.4) {
            log = log.prefix(stream.below(log.count))
        } else {
            for _ in 0...stream.below(6) { log[stream.below(log.count)] = UInt8(stream.below(256)) }
        }
        try open(hot.file, log: log, number, "with a damaged log") { context in
            let shown = try Self.firsts(context)
            let steps = Set(shown.map { $1 - (firsts[$0] ?? .min / 2) })
            if shown.count != firsts.count || steps.count != 1 || !(0...Self.logged).contains(steps.first ?? -1) {
                run.find("input \(number): a damaged log leaves half of a transaction, \(steps.sorted())")
            }
        }
    }

    /// Opens a file that SQLite can read, but that has a wrong content.
    func openWrong(_ number: Int, _ stream: inout SeededStream) throws {
        let wrong = stream.pick(WrongFile.all)
        let url = run.folder.appendingPathComponent("wrong-\(number).sqlite")
        defer { remove(url) }
        try (wrong.isForeign ? Data() : file).write(to: url)
        if !run.isSabotaged("obedient") || wrong.isForeign { try Self.edit(url, wrong.steps) {} }
        try open(Data(contentsOf: url), number, wrong.name, demanded: wrong.code)
    }

    /// Opens a sound file after statements that SQLite may execute or refuse.
    func openEdited(_ number: Int, _ statements: String) throws {
        let url = run.folder.appendingPathComponent("edited-\(number).sqlite")
        defer { remove(url) }
        try file.write(to: url)
        do { try Self.edit(url, [statements]) {} } catch is StressError { run.count("edits-refused") }
        try open(Data(contentsOf: url), number, "after “\(statements)”")
    }

    // MARK: - Using them

    private func remove(_ url: URL) { for suffix in ["", "-wal", "-shm", "-journal"] { unlink(url.path + suffix) } }

    /// Opens, reads, changes and verifies a file.
    ///
    /// - Parameters:
    ///   - bytes: The file.
    ///   - log: Its log, if it has one.
    ///   - number: The number of the input.
    ///   - name: The fault of the file.
    ///   - demanded: The only error with which it may be refused; `nil` if it may be used, or refused with any error.
    ///   - look: Checks the content.
    /// - Throws: If the file cannot be made.
    private func open(
        _ bytes: Data,
        log: Data? = nil,
        _ number: Int,
        _ name: String,
        demanded: CocoaError.Code? = nil,
        _ look: (NSManagedObjectContext) throws -> Void = { _ in }
    ) throws {
        let url = run.folder.appendingPathComponent("hostile-\(number).sqlite")
        defer { remove(url) }
        try bytes.write(to: url)
        try log?.write(to: URL(fileURLWithPath: url.path + "-wal"))
        let coordinator = NSPersistentStoreCoordinator(managedObjectModel: StressModel.shared)
        coordinator.unreportableErrorHandler = { error, doing in
            if !(error is CocoaError) { run.find("input \(number): \(doing) gave \(describe(error))") }
            run.count("values-refused")
        }
        do {
            try coordinator.addPersistentStore(type: .sqlite, at: url)
            defer { try? run.close(coordinator) }
            let context = coordinator.context()
            try look(context)
            try use(context)
            try readImages(context, number, name)
            run.count("files-used")
            if let demanded {
                run.find("input \(number): a file \(name) was used, not refused with \(demanded.rawValue)")
            }
        } catch let error as CocoaError {
            run.count("files-refused")
            if let demanded, error.code != demanded {
                run.find("input \(number): a file \(name) gave \(describe(error)), not \(demanded.rawValue)")
            }
        } catch { run.find("input \(number): a file \(name) gave \(describe(error))") }
        do {
            _ = try StoreVerifier(storeURL: url, model: StressModel.shared).problems()
        } catch  where !(error is CocoaError) {
            run.find("input \(number): verifying a file \(name) gave \(describe(error))")
        } catch { run.count("files-not-verified") }
    }

    /// Reads images, which may be in separate files.
    ///
    /// No row may lead to a file that does not belong to the store.
    private func readImages(_ context: NSManagedObjectContext, _ number: Int, _ name: String) throws {
        try context.performAndWait {
            for mark in try context.fetch(NSFetchRequest<Mark>(entityName: "Mark")) {
                guard let image = mark.image, image.range(of: Data("root:".utf8)) != nil else { continue }
                run.find("input \(number): a file \(name) leads to a file of the system")
            }
        }
    }

    /// Reads everything, changes an object and adds one.
    private func use(_ context: NSManagedObjectContext) throws {
        try context.performAndWait {
            let nodes = try context.fetch(NSFetchRequest<Node>(entityName: "Node"))
            for node in nodes { _ = (node.label, node.parent?.serial, node.children.count, node.marks.count) }
            nodes.first?.first = 77
            let node = Node(context: context)
            node.parent = nodes.last
            try context.save()
        }
    }
}
