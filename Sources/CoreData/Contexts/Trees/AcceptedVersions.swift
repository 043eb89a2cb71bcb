/// Up to which versions of rows a parent stands for what became of them: it has saved them itself, or merged them.
///
/// A child that has read an earlier version was overtaken by its own tree then, where the last to save wins, and not by
/// somebody whom nobody in the tree knows of. Of the rows that were noted some 16,000 are remembered, those that were
/// noted last. Where one was forgotten a save finds a conflict that is none, never the reverse.
///
/// Confined to the context's queue.
struct AcceptedVersions {
    /// Versions, one upon the other, of which the context has accepted all but the first.
    private struct Span {
        let first: Int64
        var last: Int64
    }

    /// The version of a row that was deleted.
    static let gone: Int64 = -1
    private static let limit = 8192

    private var recent: [RowName: Span] = [:]
    private var older: [RowName: Span] = [:]

    init() {}

    /// Whether nothing is noted.
    var isEmpty: Bool { recent.isEmpty && older.isEmpty }

    /// Notes a version that was saved upon another one.
    mutating func note(_ name: RowName, _ version: Int64, upon base: Int64) {
        let known = recent[name] ?? older[name]
        let first = known.flatMap { $0.last == base ? $0.first : nil } ?? base
        enter(name, Span(first: first, last: version))
    }

    /// Notes a version that stands for all before it.
    mutating func note(_ name: RowName, _ version: Int64) { enter(name, Span(first: .min, last: version)) }

    private mutating func enter(_ name: RowName, _ span: Span) {
        if recent.count >= Self.limit {
            older = recent
            recent = [:]
        }
        recent[name] = span
    }

    /// Whether the context has accepted all that became of a row from one version to another.
    func cover(_ name: RowName, from base: Int64, to version: Int64) -> Bool {
        guard let span = recent[name] ?? older[name], span.first <= base else { return false }
        return version == Self.gone ? span.last == Self.gone : version <= span.last
    }
}

extension NSManagedObjectContext {
    /// Notes an object that was saved, before it is taken for clean.
    final func noteWritten(_ object: NSManagedObject) {
        guard downward.hasChildren, let row = object.current else { return }
        let name = RowName(object)
        guard object.flags.isDisjoint(with: .inserted) else { return tree.acceptedVersions.note(name, row.version) }
        guard let base = object.extras?.base, base.version != row.version else { return }
        tree.acceptedVersions.note(name, row.version, upon: base.version)
    }

    /// Notes an object whose deletion was saved.
    final func noteDeleted(_ object: NSManagedObject) {
        guard downward.hasChildren else { return }
        tree.acceptedVersions.note(RowName(object), AcceptedVersions.gone)
    }

    /// Notes that the version of an object, as it was brought up to date, is accepted here.
    final func noteRefreshed(_ object: NSManagedObject) {
        guard downward.hasChildren, object.key > 0, let version = object.baseRow?.version, version > 0 else { return }
        tree.acceptedVersions.note(RowName(object), version)
    }

    /// Notes the rows of a message that was merged, of which there may be no objects here.
    ///
    /// Reads nothing: of a row that neither an object nor the row cache has nothing is noted.
    final func noteMerged(_ message: ChangeMessage) {
        guard downward.hasChildren else { return }
        for change in message.inserted + message.updated + message.deleted where change.key > 0 {
            let (storeIndex, root) = (Int32(change.store.index), change.layout.rootNumber)
            let object = registered(key: change.key, layout: change.layout, storeIndex: storeIndex)
            if let object, !object.isFault, object.flags.isDisjoint(with: .gone) {
                noteRefreshed(object)
                continue
            }
            let name = RowName(storeIndex: storeIndex, root: root, key: change.key)
            if upward == nil, let row = store(at: storeIndex)?.cache.row(change.key, root: root) {
                tree.acceptedVersions.note(name, row.version)
            }
        }
        for change in message.deleted where change.key > 0 {
            let (storeIndex, root) = (Int32(change.store.index), change.layout.rootNumber)
            let object = registered(key: change.key, layout: change.layout, storeIndex: storeIndex)
            // A change that was kept in spite of the deletion, or a row that is back.
            guard object?.flags.contains(.gone) ?? (change.store.cache.row(change.key, root: root) == nil) else {
                continue
            }
            let name = RowName(storeIndex: storeIndex, root: root, key: change.key)
            tree.acceptedVersions.note(name, AcceptedVersions.gone)
        }
    }

    /// Whether this context, or one above, has accepted what became of a row.
    final func hasAccepted(_ name: RowName, from base: Int64, to version: Int64) -> Bool {
        if tree.acceptedVersions.cover(name, from: base, to: version) { return true }
        guard let upward else { return false }
        return visitParent(upward) { $0.hasAccepted(name, from: base, to: version) }
    }
}
