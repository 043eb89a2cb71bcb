import Foundation
import StrataLocks

/// All that was asked of a disk, in order, from which the files after a loss of power can be made: at any moment, and as often
/// as one likes.
final class DiskLog: Sendable {
    enum Entry {
        case create(String)
        case write(String, at: Int, [UInt8])
        case truncate(String, to: Int)
        case sync(String)
        /// Durable only if the folder was synced with it.
        case delete(String, isDurable: Bool)
        /// Something that whoever writes has been told.
        case mark(Int64)
    }

    private let log = Locked<[Entry]>([])

    func add(_ entry: Entry) { log.withLock { $0.append(entry) } }

    /// The entries so far.
    var entries: [Entry] { log.withLock { $0 } }
}

/// The files of a disk, and what of them has not reached it for certain.
struct DiskState {
    /// What becomes of that which was not synced.
    enum Fate: CaseIterable {
        case allLost
        case allKept
        /// Each write by itself: kept, lost, or torn.
        case mixed
    }

    private struct File {
        /// What is on the disk for certain; `nil` if not even that there is a file.
        var durable: [UInt8]?
        /// What was done since, in order.
        var pending: [DiskLog.Entry] = []
        var isDeleted = false
    }

    private var files: [String: File] = [:]
    /// Files whose deletion may not have reached the disk, and that nothing has taken the place of.
    private var isPending: Bool { files.values.contains { !$0.pending.isEmpty || $0.isDeleted } }

    /// Whether a loss of power could lose something.
    var hasUnsynced: Bool { isPending }

    /// Applies what was asked next.
    mutating func apply(_ entry: DiskLog.Entry) {
        switch entry {
        case .create(let path):
            // In place of one that was deleted, the old one may still come back.
            if files[path]?.isDeleted ?? true { files[path] = File() }
        case .write(let path, _, _), .truncate(let path, _): files[path, default: File()].pending.append(entry)
        case .sync(let path):
            guard var file = files[path], !file.isDeleted else { return }
            var content = file.durable ?? []
            for write in file.pending { Self.apply(write, to: &content) }
            (file.durable, file.pending) = (content, [])
            files[path] = file
            // SQLite syncs the folder with a new file.
            files = files.filter { !$1.isDeleted }
        case .delete(let path, let isDurable): if isDurable { files[path] = nil } else { files[path]?.isDeleted = true }
        case .mark: break
        }
    }

    /// The files as they may be after a loss of power now.
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
                        // What is torn is torn between sectors.
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
        case .create, .sync, .delete, .mark: break
        }
    }
}
