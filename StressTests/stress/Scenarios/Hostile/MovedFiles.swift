import CoreData

/// Files of a store are moved away while it is open.
///
/// No save may go into them, and work must go on when they are back.
enum MovedFiles {
    private static let suffixes = ["", "-wal", "-shm"]

    /// Moves the files of one store away, and then those of a second one, which another store replaces.
    ///
    /// - Throws: Errors that have nothing to do with the moved files.
    static func run(_ run: Run) throws {
        for isReplaced in [false, true] { try move(run, isReplaced) }
    }

    private static func move(_ run: Run, _ isReplaced: Bool) throws {
        let word = isReplaced ? "replaced" : "moved away"
        let folder = try newFolder(run, isReplaced ? "replaced" : "moved")
        let aside = try newFolder(run, isReplaced ? "replaced-aside" : "moved-aside")
        let url = folder.appendingPathComponent("store.sqlite")
        let former = aside.appendingPathComponent("store.sqlite")
        let other = aside.appendingPathComponent("other.sqlite")
        try store(9, run, other)
        let whole = try Data(contentsOf: other)
        let stack = try run.open(at: url)
        run.watchdog.beat(0, "a store whose files are moved")
        let context = stack.context()
        try context.performAndWait { () throws in
            Account(context: context).number = 1
            try context.save()
        }
        let moved = suffixes.filter { FileManager.default.fileExists(atPath: url.path + $0) }
        for suffix in moved { try rename(url, to: former, suffix) }
        if isReplaced { try rename(other, to: url, "") }
        context.performAndWait {
            Account(context: context).number = 2
            do {
                try context.save()
                run.find("a save has succeeded though the files of its store were \(word)")
            } catch let error as CocoaError where error.code == .persistentStoreOperation {
                run.count("moved-stores")
            } catch {
                run.find("a save gave \(describe(error)) though the files of its store were \(word)")
            }
        }
        if isReplaced {
            let isWhole = try Data(contentsOf: url) == whole
            if !isWhole { run.find("a save has changed a store that has come into the place of its own") }
            try rename(url, to: other, "")
        }
        for suffix in suffixes where FileManager.default.fileExists(atPath: url.path + suffix) {
            run.find("a save has made \(url.lastPathComponent + suffix) though the files of its store were \(word)")
            unlink(url.path + suffix)
        }
        for suffix in moved { try rename(former, to: url, suffix) }
        context.performAndWait {
            do { try context.save() } catch {
                run.find("saving gave \(describe(error)) though the files that were \(word) are back")
            }
        }
        try run.close(stack)
        let numbers = try numbers(run, url)
        if numbers != [1, 2] { run.find("after files were \(word) and put back \(numbers) are stored, not [1, 2]") }
        try run.audit("after files were \(word)", of: url)
    }

    private static func newFolder(_ run: Run, _ name: String) throws -> URL {
        let folder = run.folder.appendingPathComponent(name)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        return folder
    }

    private static func rename(_ url: URL, to other: URL, _ suffix: String) throws {
        try FileManager.default.moveItem(atPath: url.path + suffix, toPath: other.path + suffix)
    }

    /// Makes a store with one account, and closes it.
    private static func store(_ number: Int64, _ run: Run, _ url: URL) throws {
        let stack = try run.open(at: url)
        let context = stack.context()
        try context.performAndWait { () throws in
            Account(context: context).number = number
            try context.save()
        }
        try run.close(stack)
    }

    /// The numbers of the accounts of a store.
    private static func numbers(_ run: Run, _ url: URL) throws -> [Int64] {
        let stack = try run.open(at: url)
        let context = stack.context()
        let numbers = try context.performAndWait { () throws -> [Int64] in
            try context.fetch(NSFetchRequest<Account>(entityName: "Account")).map(\.number).sorted()
        }
        try run.close(stack)
        return numbers
    }
}
