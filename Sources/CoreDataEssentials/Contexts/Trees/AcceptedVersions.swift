import StrataLocks
import StrataRows

/// The versions of rows that a parent has accepted: it has saved or merged them itself.
///
/// If a child has read an earlier version of such a row, its own tree has changed the row since. Then the last save
/// wins, and there is no conflict as with a writer outside of the tree. About 16,000 rows are remembered, those that
/// were noted last. If a row was forgotten, a save may find a conflict where there is none, but never the reverse.
///
/// Confined to the context's queue.
struct AcceptedVersions {
    /// Consecutive versions of a row; the context has accepted all but the first.
    private struct Span {
        let first: Int64
        var last: Int64
    }

    /// The version of a row that was deleted.
    static let gone: Int64 = -1

    private var recent: [RowName: Span] = [:]
    private var older: [RowName: Span] = [:]

    init() {}

    /// Whether no version is noted.
    var isEmpty: Bool { recent.isEmpty && older.isEmpty }

    /// Notes a version that was saved on the basis of another one.
    mutating func accept(_ name: RowName, version: Int64, basedOn base: Int64) {
        let known = recent[name] ?? older[name]
        let first = known.flatMap { $0.last == base ? $0.first : nil } ?? base
        enter(name, Span(first: first, last: version))
    }

    /// Notes a version that includes all earlier ones.
    mutating func accept(_ name: RowName, version: Int64) { enter(name, Span(first: .min, last: version)) }

    private mutating func enter(_ name: RowName, _ span: Span) {
        if recent.count >= WorkSize.acceptedVersions {
            older = recent
            recent = [:]
        }
        recent[name] = span
    }

    /// Whether the context has accepted all changes of a row from one version to another.
    func cover(_ name: RowName, from base: Int64, to version: Int64) -> Bool {
        guard let span = recent[name] ?? older[name], span.first <= base else { return false }
        return version == Self.gone ? span.last == Self.gone : version <= span.last
    }
}

extension NSManagedObjectContext {
    /// Notes an object that was saved, before it is marked as unchanged.
    final func acceptWritten(_ object: NSManagedObject) {
        guard downward.hasChildren, let row = object.current else { return }
        let name = RowName(object)
        guard object.flags.isDisjoint(with: .inserted) else {
            return tree.acceptedVersions.accept(name, version: row.version)
        }
        guard let base = object.extras?.base, base.version != row.version else { return }
        tree.acceptedVersions.accept(name, version: row.version, basedOn: base.version)
    }

    /// Notes an object whose deletion was saved.
    final func acceptDeletion(of object: NSManagedObject) {
        guard downward.hasChildren else { return }
        tree.acceptedVersions.accept(RowName(object), version: AcceptedVersions.gone)
    }

    /// Notes that the version of an object, as it was brought up to date, is accepted here.
    final func acceptRefreshed(_ object: NSManagedObject) {
        guard downward.hasChildren, object.key > 0, let version = object.baseRow?.version, version > 0 else { return }
        tree.acceptedVersions.accept(RowName(object), version: version)
    }

    /// Whether this context, or one above, has accepted the changes of a row between two versions.
    final func hasAccepted(_ name: RowName, from base: Int64, to version: Int64) -> Bool {
        if tree.acceptedVersions.cover(name, from: base, to: version) { return true }
        guard let upward else { return false }
        return visitParent(upward) { $0.hasAccepted(name, from: base, to: version) }
    }
}
