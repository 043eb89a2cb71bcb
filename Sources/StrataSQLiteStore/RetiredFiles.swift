import Foundation
import StrataLocks
import StrataRows
import StrataSQL

/// External files that no current row names, but that rows of older versions name which are still read.
///
/// A file is removed when all versions are gone that were held when its row released it. This covers all coordinators
/// of the process. Other processes remove files at once. Any thread may call any member.
final class RetiredFiles: Sendable {
    private struct State {
        var lastHold: UInt64 = 0
        /// The numbers of the present holds.
        var holds: Set<UInt64> = []
        /// The names, each with the number of the last hold that may need it, in the order of these numbers.
        var waiting: [(name: String, lastHold: UInt64)] = []
        /// The number of times that the store was replaced by another one.
        var contents = 0
        /// The files that the other store brought.
        var brought: Set<String> = []
    }

    /// Keeps the files that exist now until the hold is released.
    final class Hold: Sendable {
        private let files: RetiredFiles
        private let number: UInt64

        fileprivate init(_ files: RetiredFiles, _ number: UInt64) {
            self.files = files
            self.number = number
        }

        deinit { files.end(number) }
    }

    private let external: ExternalData
    private let state = Locked(State())

    private init(_ external: ExternalData) { self.external = external }

    // MARK: - By folder

    private struct Weak {
        weak var files: RetiredFiles?
    }

    private static let known = Locked<[String: Weak]>([:])

    /// The retired files of a folder, shared by all stores with that folder.
    static func of(_ external: ExternalData) -> RetiredFiles {
        // A store in memory has no files.
        guard let store = external.folder?.deletingLastPathComponent() else { return RetiredFiles(external) }
        // The folder itself may not exist yet.
        let folder = store.deletingLastPathComponent().resolvingSymlinksInPath()
        let path = folder.appendingPathComponent(store.lastPathComponent).path
        return known.withLock { known in
            if let files = known[path]?.files { return files }
            known = known.filter { $0.value.files != nil }
            let files = RetiredFiles(external)
            known[path] = Weak(files: files)
            return files
        }
    }

    // MARK: - Holding and removing

    /// Keeps the present files for a version that is about to be read.
    func hold() -> Hold {
        let number = state.withLock { state in
            state.lastHold += 1
            state.holds.insert(state.lastHold)
            return state.lastHold
        }
        return Hold(self, number)
    }

    /// Removes files that no row names any more, as soon as no held version needs them.
    ///
    /// - Parameters:
    ///   - names: The files.
    ///   - contents: The value that ``contents`` had while they were searched, under the write lock.
    func retire(_ names: [String], of contents: Int) {
        guard !names.isEmpty else { return }
        state.withLock { state in
            // An older state of the store may have replaced it since. Its rows name the files again.
            let names = contents == state.contents ? names : names.filter { !state.brought.contains($0) }
            guard state.holds.isEmpty else { return state.waiting += names.map { ($0, state.lastHold) } }
            // This runs under the lock, so that no file is removed once a replacement has begun.
            for name in names { external.remove(name) }
        }
    }

    /// The number of the store's present contents.
    ///
    /// It is read under the store's write lock.
    var contents: Int { state.withLock(\.contents) }

    /// Notes that another store, which has brought files, is about to replace this one.
    ///
    /// It is called under the store's write lock. Files that were retired before stay: the other store may use the same
    /// names.
    func replace(bringing names: Set<String>) {
        state.withLock { state in
            state.waiting = []
            state.contents += 1
            state.brought = names
        }
    }

    private func end(_ number: UInt64) {
        state.withLock { state in
            state.holds.remove(number)
            let oldest = state.holds.min() ?? .max
            let count = state.waiting.firstIndex { $0.lastHold >= oldest } ?? state.waiting.count
            for (name, _) in state.waiting.prefix(count) { external.remove(name) }
            state.waiting.removeFirst(count)
        }
    }
}
