import Foundation
import StrataLocks
import StrataRows

/// The result of a batched fetch: the identities of the matching objects in order, whose rows are read batch by
/// batch.
///
/// It holds identities and not objects, so its size does not depend on the size of the objects. It is confined to the
/// queue of the context that fetched. Each call receives that context as an argument, because the context may hold
/// the batched fetch.
final class BatchedFetch {
    /// The matching objects.
    let references: [ObjectReference]
    /// The store of each object; empty if all are in the store at `storeIndex`.
    private let storeIndexes: [Int32]
    private let storeIndex: Int32
    /// The entity that was fetched.
    private unowned(unsafe) let layout: EntityLayout
    // Layouts live as long as the process.
    private let batchSize: Int
    private let options: Options
    /// The objects that have no row in a store yet, by key; none once an array holds them.
    private var unsaved: [Int64: NSManagedObject]

    /// The positions by key, if the objects are in another order; made by the first search for a fault.
    private var positions: KeyMap<Int>?
    /// Whether each key is higher than the one before it, as in a fetch without an order; `nil` before the first search.
    private var isInOrderOfKeys: Bool?
    /// Whether each batch has been read.
    private var readBatches: [Bool]
    private var unreadCount: Int
    /// The batches that the faults of an array have read and that still have their rows, in the order of reading.
    private var recentBatches: [Int] = []

    /// The treatment of a batch's rows.
    struct Options {
        /// Whether rows are read at all.
        var readsRows = true
        /// Whether objects stay faults until a property is read.
        var asFaults = true
        /// Whether realised objects take the newly read values.
        var refreshes = false
        var prefetches: [PrefetchStep] = []
    }

    /// Makes a batched fetch of the objects found in one store.
    ///
    /// - Parameters:
    ///   - references: The objects, in order.
    ///   - layout: An entity that has all of them.
    ///   - storeIndex: The index of their store.
    ///   - storeIndexes: The index of each object's store, if there are several stores.
    ///   - unsaved: The objects that are not stored yet.
    ///   - batchSize: The number of rows that are read at a time.
    ///   - options: The treatment of the rows.
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

    /// Makes a batched fetch of the objects found in several stores.
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

    /// Whether every batch has been read.
    var isRead: Bool { unreadCount == 0 }

    func batch(of position: Int) -> Int { position / batchSize }

    func positions(ofBatch batch: Int) -> Range<Int> {
        batch * batchSize..<min(references.count, (batch + 1) * batchSize)
    }

    /// The object at a position: the registered object, or else a fault.
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

    /// The object at a position; `nil` for an unsaved object that an array held and the context does not have any more.
    private func heldObject(at position: Int, in context: NSManagedObjectContext) -> NSManagedObject? {
        let reference = references[position]
        guard reference.key < 0, unsaved[reference.key] == nil else { return object(at: position, in: context) }
        return context.registered(
            key: reference.key,
            layout: context.layout(of: reference),
            storeIndex: storeIndexes.isEmpty ? storeIndex : storeIndexes[position]
        )
    }

    /// Lets go of the unsaved objects, which an array holds from now on.
    ///
    /// The context remembers the fetch for longer than the array lives. An object that only a parent has would keep its
    /// values for as long, although no code holds it.
    func letGoOfUnsaved() { unsaved = [:] }

    /// All objects except those that have gone; objects that the context does not know become faults without rows.
    ///
    /// If an object was deleted here and its row exists again, then it is included.
    ///
    /// - Throws: An error of the store, if it cannot be read whether such a row exists again.
    func objects(in context: NSManagedObjectContext) throws -> [NSManagedObject] {
        guard storeIndexes.isEmpty else {
            return try references.indices.map { object(at: $0, in: context) }.filter {
                try !$0.flags.contains(.gone) || context.isBack($0)
            }
        }
        context.fileNewlySavedFaults()
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
                    // A deletion was saved or merged, either while the store was read, or before that and now the row
                    // exists again.
                    if try !object.flags.contains(.gone) || context.isBack(object) { result.append(object) }
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

    /// Whether each batch also reads the objects that relationships lead to.
    var prefetches: Bool { !options.prefetches.isEmpty }

    // MARK: - Reading

    /// Reads the rows of a batch with one query for each store, and prefetches for them.
    ///
    /// A read error is reported, and the faults are then filled when they are used.
    ///
    /// - Parameters:
    ///   - batch: The number of the batch.
    ///   - context: The context that fetched.
    ///   - firing: The fault that is being realised and needs the batch. It gets its row, but this method does not
    ///     realise it.
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
        let objects = positions(ofBatch: batch).compactMap { heldObject(at: $0, in: context) }
        defer { context.deliverRegistrations() }
        do {
            // The row of an object whose deletion was merged may exist again.
            for object in objects where object.flags.contains(.gone) { _ = try context.isBack(object) }
            guard options.readsRows else { return objects }
            try fill(objects, in: context, for: firing)
            try context.prefetch(options.prefetches, of: objects)
        } catch {
            // Objects that were to be refreshed keep their former values.
            if options.refreshes { context.failedReads.recordError(error) }
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
                // Rows that the row cache has were not read again.
                let row = try object.current ?? context.freshRow(object.key, root: layout.rootNumber, store)
                if let row { object.realise(row) }
            }
        }
    }

    // MARK: - Faults

    /// The batch that contains an object and has not been read yet.
    func unreadBatch(with object: NSManagedObject) -> Int? {
        guard object.layout.rootNumber == layout.rootNumber, object.storeIndex == storeIndex, storeIndexes.isEmpty
        else {
            return nil
        }
        guard let position = position(of: object.key) else { return nil }
        let batch = batch(of: position)
        return readBatches[batch] ? nil : batch
    }

    /// The position of the object with a key; `nil` if there is none.
    private func position(of key: Int64) -> Int? {
        let isInOrder = isInOrderOfKeys ?? zip(references, references.dropFirst()).allSatisfy { $0.key < $1.key }
        isInOrderOfKeys = isInOrder
        guard !isInOrder else {
            var (low, high) = (0, references.count)
            while low < high {
                let middle = (low + high) / 2
                if references[middle].key < key { low = middle + 1 } else { high = middle }
            }
            return low < references.count && references[low].key == key ? low : nil
        }
        if positions == nil {
            var map = KeyMap<Int>(minimumCapacity: references.count)
            for (position, reference) in references.enumerated() { map.set(position, for: reference.key) }
            positions = map
        }
        return positions?[key]
    }

    /// Notes that a fault of an array has read a batch, and drops the values of the oldest batch.
    ///
    /// The oldest batch is the one that was read longest ago. Its values are dropped once enough others have been
    /// read since. Objects that other code holds keep their values, and so do objects with changes.
    ///
    /// - Complexity: O(size of a batch).
    func letGoOfOldBatches(since batch: Int, in context: NSManagedObjectContext) {
        recentBatches.append(batch)
        guard recentBatches.count > max(WorkSize.keptBatches, WorkSize.keptRows / batchSize) else { return }
        let oldest = recentBatches.removeFirst()
        guard !context.retainsRegisteredObjects, storeIndexes.isEmpty, isHeldByArray(oldest, in: context) else {
            return
        }
        readBatches[oldest] = false
        unreadCount += 1
        let table = context.table(storeIndex: storeIndex, root: layout.rootNumber)
        // A child may have received an older row than it will receive from now on.
        context.downward.countStateChange()
        for position in positions(ofBatch: oldest) {
            let key = references[position].key
            guard key > 0, table.referenceCount(of: key) == Self.countsOfMembers, let object = table[key] else {
                continue
            }
            object.letGoOfValues()
            if prefetches { object.flags.insert(.awaitsBatch) }
        }
    }

    /// The reference count of an object that only an array and its context hold.
    private static let countsOfMembers = 2

    /// Whether an array still holds a batch.
    ///
    /// If the array is gone, then the context alone holds most of the objects. The others are held by code that wants
    /// only them.
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

    /// Whether the context has an object of this fetch.
    func isInUse(in context: NSManagedObjectContext) -> Bool {
        references.contains { reference in
            context.registered(key: reference.key, layout: layout, storeIndex: storeIndex) != nil
        }
    }
}
