import Foundation
import StrataLocks

/// All operations on a disk, in order.
///
/// From them, the files after a loss of power can be computed for any moment, as often as needed.
final class DiskLog: Sendable {
    enum Entry {
        case create(String)
        case write(String, at: Int, [UInt8])
        case truncate(String, to: Int)
        /// A sync begins, with its number: what another thread writes during it may not be a part of it.
        case syncBegins(String, Int)
        case sync(String, Int)
        /// The deletion is durable only if the folder was synced with it.
        case delete(String, isDurable: Bool)
        /// A step that was acknowledged to the program.
        case mark(Int64)
    }

    private let log = Locked<[Entry]>([])

    func add(_ entry: Entry) { log.withLock { $0.append(entry) } }

    /// The entries so far.
    var entries: [Entry] { log.withLock { $0 } }
}

/// The files of a disk, and the operations on them that may not have reached it.
struct DiskState {
    /// The fate of operations that were not synced.
    enum Fate: CaseIterable {
        case allLost
        case allKept
        /// Each write has its own fate: kept, lost, or torn.
        case mixed
    }

    private struct File {
        /// The content that is on the disk for certain; `nil` if not even the file is.
        var durable: [UInt8]?
        /// The later operations, in order.
        var pending: [DiskLog.Entry] = []
        /// How many of these were there when each sync began that has not ended.
        var syncs: [Int: Int] = [:]
        var isDeleted = false
    }

    private var files: [String: File] = [:]
    /// Whether an operation, or the deletion of a file, may not have reached the disk.
    private var isPending: Bool { files.values.contains { !$0.pending.isEmpty || $0.isDeleted } }

    /// Whether a loss of power could lose something.
    var hasUnsynced: Bool { isPending }

    /// Applies the next operation.
    mutating func apply(_ entry: DiskLog.Entry) {
        switch entry {
        case .create(let path):
            // If it replaces a deleted file, then the old one may still come back.
            if files[path]?.isDeleted ?? true { files[path] = File() }
        case .write(let path, _, _), .truncate(let path, _): files[path, default: File()].pending.append(entry)
        case .syncBegins(let path, let number):
            let count = files[path]?.pending.count
            files[path]?.syncs[number] = count
        case .sync(let path, let number):
            guard var file = files[path], !file.isDeleted else { return }
            var content = file.durable ?? []
            let count = file.syncs.removeValue(forKey: number) ?? 0
            for write in file.pending.prefix(count) { Self.apply(write, to: &content) }
            file.durable = content
            file.pending.removeFirst(count)
            file.syncs = file.syncs.mapValues { max($0 - count, 0) }
            files[path] = file
            // SQLite syncs the folder together with a new file.
            files = files.filter { !$1.isDeleted }
        case .delete(let path, let isDurable): if isDurable { files[path] = nil } else { files[path]?.isDeleted = true }
        case .mark: break
        }
    }

    /// The files as they may be if the power fails now.
    func afterPowerLoss(_ fate: Fate, _ stream: inout SeededStream) -> [String: [UInt8]] {
        var result: [String: [UInt8]] = [:]
        for (path, file) in files.sorted(by: { $0.key < $1.key }) {
            func happens() -> Bool { fate == .mixed ? stream.chance(0.5) : fate == .allKept }
            if file.isDeleted, happens() { continue }
            if file.durable == nil, !happens() { continue }
            var content = file.durable ?? []
            for entry in file.pending {
                switch fate {
                case .allLost: break
                case .allKept: Self.apply(entry, to: &content)
                case .mixed:
                    if stream.chance(0.6) {
                        Self.apply(entry, to: &content)
                    } else if case .write(let path, let at, let bytes) = entry, stream.chance(0.4) {
                        // A write is torn between sectors.
                        let sectors = bytes.count / 512
                        let kept = sectors > 0 ? 512 * stream.below(sectors + 1) : 0
                        Self.apply(.write(path, at: at, Array(bytes.prefix(kept))), to: &content)
                    }
                }
            }
            result[path] = content
        }
        return result
    }

    private static func apply(_ entry: DiskLog.Entry, to content: inout [UInt8]) {
        switch entry {
        case .write(_, let at, let bytes):
            guard !bytes.isEmpty else { return }
            let end = at + bytes.count
            if content.count < end { content += Array(repeating: 0, count: end - content.count) }
            content.replaceSubrange(at..<end, with: bytes)
        case .truncate(_, let size):
            if content.count > size { content.removeSubrange(size...) }
        case .create, .syncBegins, .sync, .delete, .mark: break
        }
    }
}
