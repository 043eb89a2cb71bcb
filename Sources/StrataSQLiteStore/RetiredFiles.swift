import Foundation
import StrataLocks
import StrataRows
import StrataSQL

/// External files that no current row names, but rows of older versions that somebody still reads.
///
/// A file is removed once every version is gone that was held when its row let go of it. This covers all coordinators of the
/// process. Other processes remove files at once. Any thread may call any member.
final class RetiredFiles: Sendable {
    private struct State {
        var lastHold: UInt64 = 0
        /// The numbers of the holds that exist.
        var holds: Set<UInt64> = []
        /// Names, with the number of the last hold that may need them; in the order of these numbers.
        var waiting: [(name: String, lastHold: UInt64)] = []
        /// How often the store was replaced by another one.
        var contents = 0
        /// The files that the other one brought.
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

    /// Those of a folder, shared by all who have the store open.
    static func of(_ external: ExternalData) -> RetiredFiles {
        // A store in memory has no files.
        guard let store = external.folder?.deletingLastPathComponent() else { return RetiredFiles(external) }
        // The folder itself may not be there yet.
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

    /// Keeps the files that are there for a version that is about to be read.
    func hold() -> Hold {
        let number = state.withLock { state in
            state.lastHold += 1
            state.holds.insert(state.lastHold)
            return state.lastHold
        }
        return Hold(self, number)
    }

    /// Removes files that no row names any more, as soon as nobody can need them.
    ///
    /// - Parameters:
    ///   - names: The files.
    ///   - contents: What ``contents`` was while they were looked for, under the write lock.
    func retire(_ names: [String], of contents: Int) {
        guard !names.isEmpty else { return }
        state.withLock { state in
            // The store may have been replaced since by an older state of itself, whose rows name them again.
            let names = contents == state.contents ? names : names.filter { !state.brought.contains($0) }
            guard state.holds.isEmpty else { return state.waiting += names.map { ($0, state.lastHold) } }
            // Under the lock, so that none goes once a replacement has begun.
            for name in names { external.remove(name) }
        }
    }

    /// The number of the store's present contents; asked under its write lock.
    var contents: Int { state.withLock(\.contents) }

    /// Notes that the store is about to be replaced by another one, which has brought files; called under its write lock.
    ///
    /// What was retired before stays: the other store may use the same names.
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
