import Foundation
import StrataRows

/// What a batched fetch has found: the identities of the matching objects, in order, whose rows are read batch by
/// batch.
///
/// Holds identities rather than objects, so what it takes does not depend on how large the objects are. Confined to the
/// queue of the context that fetched, which is handed to each call: the context may hold batched fetches itself.
final class BatchedFetch {
    /// The matching objects.
    let references: [ObjectReference]
    /// The store of each object; empty if all are of `storeIndex`.
    private let storeIndexes: [Int32]
    private let storeIndex: Int32
    /// The entity that was fetched.
    private unowned(unsafe) let layout: EntityLayout
    // Layouts live as long as the process.
    private let batchSize: Int
    private let options: Options
    /// The objects that have no row in a store yet, by key.
    private let unsaved: [Int64: NSManagedObject]

    /// The positions by key, made when a fault is first looked for.
    private var positions: KeyMap<Int>?
    /// The batches that were read.
    private var readBatches: [Bool]
    private var unreadCount: Int
    /// The batches that the faults of an array have read and still have, in the order of reading.
    private var recentBatches: [Int] = []

    /// How many batches of an array keep their rows at least, and how many rows.
    private static let keptBatches = 8
    private static let keptRows = 4096

    /// What is done with the rows of a batch.
    struct Options {
        /// Whether rows are read at all.
        var readsRows = true
        /// Whether objects stay faults until a property is read.
        var asFaults = true
        /// Whether realised objects take the values that are read.
        var refreshes = false
        var prefetches: [PrefetchStep] = []
    }

    /// What a fetch has found in one store.
    ///
    /// - Parameters:
    ///   - references: The objects, in order.
    ///   - layout: An entity that has all of them.
    ///   - storeIndex: The index of their store.
    ///   - storeIndexes: The index of each object's store, if they are of several.
    ///   - unsaved: Those of the objects that are not stored yet.
    ///   - batchSize: How many rows are read at a time.
    ///   - options: What becomes of the rows.
    init(
        _ references: [ObjectReference],
        of layout: EntityLayout,
        storeIndex: Int32,
        storeIndexes: [Int32] = [],
        unsaved: [NSManagedObject] = [],
        batchSize: Int,
        _ options: Options
    ) {
        self.references = references
        self.layout = layout
        self.storeIndex = storeIndex
        self.storeIndexes = storeIndexes
        self.unsaved = Dictionary(unsaved.map { ($0.key, $0) }) { first, _ in first }
        self.options = options
        self.batchSize = batchSize
        unreadCount = references.isEmpty ? 0 : (references.count - 1) / batchSize + 1
        readBatches = Array(repeating: false, count: unreadCount)
    }

    /// What a fetch has found, in several stores.
    convenience init(_ objects: [NSManagedObject], of layout: EntityLayout, batchSize: Int, _ options: Options) {
        let first = objects.first { $0.key > 0 }?.storeIndex ?? 0
        self.init(
            objects.map(\.reference),
            of: layout,
            storeIndex: first,
            storeIndexes: objects.contains { $0.key > 0 && $0.storeIndex != first } ? objects.map(\.storeIndex) : [],
            unsaved: objects.filter { $0.key < 0 },
            batchSize: batchSize,
            options
        )
    }

    var count: Int { references.count }

    /// Whether every batch was read.
    var isRead: Bool { unreadCount == 0 }

    func batch(of position: Int) -> Int { position / batchSize }

    func positions(ofBatch batch: Int) -> Range<Int> {
        batch * batchSize..<min(references.count, (batch + 1) * batchSize)
    }

    /// The object at a position: the registered one, else a fault.
    ///
    /// Reads nothing.
    func object(at position: Int, in context: NSManagedObjectContext) -> NSManagedObject {
        let reference = references[position]
        if reference.key < 0, let object = unsaved[reference.key] { return object }
        let storeIndex = storeIndexes.isEmpty ? storeIndex : storeIndexes[position]
        let layout = context.layout(of: reference)
        return context.registered(key: reference.key, layout: layout, storeIndex: storeIndex)
            ?? context.makeFault(key: reference.key, layout: layout, storeIndex: storeIndex)
    }

    /// All objects but those that have gone; those that the context does not know become faults without rows.
    ///
    /// What was deleted here, and is in the store again, is read.
    func objects(in context: NSManagedObjectContext) -> [NSManagedObject] {
        guard storeIndexes.isEmpty else {
            return references.indices.map { object(at: $0, in: context) }.filter {
                !$0.flags.contains(.gone) || context.isBack($0)
            }
        }
        context.settleStrangers()
        let table = context.table(storeIndex: storeIndex, root: layout.rootNumber)
        table.reserve(references.count)
        let isFirst = table.count == 0
        var result: [NSManagedObject] = []
        result.reserveCapacity(references.count)
        var number = 0
        unowned(unsafe) var known = layout
        var type = layout.objectClass.type(of: layout.entity)
        for reference in references {
            if reference.key < 0 {
                if let object = unsaved[reference.key] { result.append(object) }
                continue
            }
            if !isFirst {
                context.makeFaultIfForgotten(key: reference.key, root: layout.rootNumber, storeIndex: storeIndex)
                if let object = table[reference.key] {
                    // Its deletion was saved, or merged, while the store was read; or before, and now the row is back.
                    if !object.flags.contains(.gone) || context.isBack(object) { result.append(object) }
                    continue
                }
            }
            if reference.entity != number {
                number = reference.entity
                known = context.layout(of: reference)
                type = known.objectClass.type(of: known.entity)
            }
            result.append(
                context.makeFault(
                    key: reference.key,
                    layout: known,
                    storeIndex: storeIndex,
                    type: type,
                    flags: .newFault,
                    in: table
                )
            )
        }
        return result
    }

    /// The numbers of the entities that occur.
    var entityNumbers: Set<Int> {
        var numbers: Set<Int> = []
        var last = 0
        for reference in references where reference.entity != last {
            last = reference.entity
            numbers.insert(last)
        }
        return numbers
    }

    /// Whether the objects of a batch are realised with the first of them.
    var realisesBatches: Bool { !options.asFaults }

    /// Whether what relationships lead to is read with each batch.
    var prefetches: Bool { !options.prefetches.isEmpty }

    // MARK: - Reading

    /// Reads the rows of a batch, with one query for each store, and what is to be prefetched for them.
    ///
    /// What cannot be read just now is reported, and its faults are filled when they are used.
    ///
    /// - Parameters:
    ///   - batch: The number of the batch.
    ///   - context: The context that fetched.
    ///   - firing: The fault that is being realised and needs the batch; it gets its row but is not realised here.
    /// - Returns: The objects of the batch.
    @discardableResult
    func read(
        _ batch: Int,
        in context: NSManagedObjectContext,
        for firing: NSManagedObject? = nil
    ) -> [NSManagedObject] {
        if !readBatches[batch] {
            readBatches[batch] = true
            unreadCount -= 1
        }
        let objects = positions(ofBatch: batch).map { object(at: $0, in: context) }
        defer { context.deliverRegistrations() }
        guard options.readsRows else { return objects }
        do {
            try fill(objects, in: context, for: firing)
            try context.prefetch(options.prefetches, of: objects)
        } catch {
            // Objects that were to be refreshed go on showing what they had.
            if options.refreshes { context.failedReads.note(error) }
            context.coordinator?.report(error, "reading a batch of \(layout.entity.name ?? "")")
        }
        return objects
    }

    private func fill(
        _ objects: [NSManagedObject],
        in context: NSManagedObjectContext,
        for firing: NSManagedObject?
    ) throws {
        for (storeIndex, objects) in storeIndexes.isEmpty
            ? [storeIndex: objects] : Dictionary(grouping: objects, by: \.storeIndex)
        {
            guard storeIndex >= 0, let store = context.store(at: storeIndex), store.isOpen else { continue }
            let others = try context.fill(objects, of: layout, in: store, rereads: options.refreshes)
            if options.refreshes {
                let table = context.table(storeIndex: storeIndex, root: layout.rootNumber)
                for row in others { table[row.key]?.rebase(onto: row) }
            }
            guard !options.asFaults else { continue }
            for object in objects where object !== firing && object.flags.contains(.fault) {
                // What the row cache has was not read again.
                let row = try object.current ?? context.freshRow(object.key, root: layout.rootNumber, store)
                if let row { object.realise(row) }
            }
        }
    }

    // MARK: - Faults

    /// The batch that has an object and was not read yet.
    func unreadBatch(with object: NSManagedObject) -> Int? {
        guard object.layout.rootNumber == layout.rootNumber, object.storeIndex == storeIndex, storeIndexes.isEmpty
        else {
            return nil
        }
        if positions == nil {
            var map = KeyMap<Int>(minimumCapacity: references.count)
            for (position, reference) in references.enumerated() { map.set(position, for: reference.key) }
            positions = map
        }
        guard let position = positions?[object.key] else { return nil }
        let batch = batch(of: position)
        return readBatches[batch] ? nil : batch
    }

    /// Notes that a fault of an array has read a batch, and lets go of the values of one that was passed by.
    ///
    /// That is the batch that was read longest ago, once enough others were read since. Objects that other code
    /// holds keep their values, and so do those that have changes.
    ///
    /// - Complexity: O(size of a batch).
    func letGoOfOldBatches(since batch: Int, in context: NSManagedObjectContext) {
        recentBatches.append(batch)
        guard recentBatches.count > max(Self.keptBatches, Self.keptRows / batchSize) else { return }
        let oldest = recentBatches.removeFirst()
        guard !context.retainsRegisteredObjects, storeIndexes.isEmpty, isHeldByArray(oldest, in: context) else {
            return
        }
        readBatches[oldest] = false
        unreadCount += 1
        let table = context.table(storeIndex: storeIndex, root: layout.rootNumber)
        // A child may have been shown an older row than it is shown from now on.
        context.downward.noteState()
        for position in positions(ofBatch: oldest) {
            let key = references[position].key
            guard key > 0, table.referenceCount(of: key) == Self.countsOfMembers, let object = table[key] else {
                continue
            }
            object.letGoOfValues()
            if prefetches { object.flags.insert(.awaitsBatch) }
        }
    }

    /// How often an object is counted that is held by an array and by its context only.
    private static let countsOfMembers = 2

    /// Whether an array still has a batch.
    ///
    /// If the array is gone, then most objects are held by the context alone, and the others by code that wants just
    /// them.
    private func isHeldByArray(_ batch: Int, in context: NSManagedObjectContext) -> Bool {
        let table = context.table(storeIndex: storeIndex, root: layout.rootNumber)
        let positions = positions(ofBatch: batch)
        var heldCount = 0
        for position in positions where references[position].key > 0 {
            let count = table.referenceCount(of: references[position].key)
            if count > 0, count < Self.countsOfMembers { return false }
            if count > 0 { heldCount += 1 }
        }
        return heldCount * 2 > positions.count
    }

    /// Whether the context has an object of it.
    func isInUse(in context: NSManagedObjectContext) -> Bool {
        references.contains { reference in
            context.registered(key: reference.key, layout: layout, storeIndex: storeIndex) != nil
        }
    }
}
