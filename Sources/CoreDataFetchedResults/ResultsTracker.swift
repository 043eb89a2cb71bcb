import CoreDataEssentials
import Foundation
import StrataPredicates
import StrataRows

/// The controller of a tracker, as the tracker sees it.
///
/// The controller is generic, the tracker is not.
protocol ResultsTrackerClient: AnyObject {
    /// Notifies the delegate that changes are about to be made.
    func willChange()
    /// Notifies the delegate of all changes, and that they are complete.
    func didChange(_ changes: ResultChanges)
    /// The letter or title for a section in an index.
    func indexTitle(ofSectionNamed name: String) -> String?
    /// The same, without a call of the delegate.
    func ownIndexTitle(ofSectionNamed name: String) -> String?
    /// The result that stands for an object: the object itself or its ID.
    func anyResult(for object: NSManagedObject) -> Any
}

/// Keeps a controller's results up to date.
///
/// At the end of each event it looks at the changed objects and decides in memory which of them belong to the results
/// now. It moves those in the sorted list. For *k* changes to *n* results it evaluates *k* predicates and makes O(*k*
/// log *n*) comparisons, without a fetch.
///
/// Sometimes the changed objects alone do not decide. Then it fetches anew and compares. This happens in three cases:
/// - Objects of other entities changed, and the predicate, the sort or the section names use these.
/// - A limit or an offset lets unchanged objects into the results.
/// - A merge was very large.
///
/// It is confined to the context's queue.
final class ResultsTracker {
    /// The cost of keeping the results up to date so far.
    struct Work {
        var fetches = 0
        var evaluations = 0
        var comparisons = 0
    }

    let context: NSManagedObjectContext
    let request: any AnyFetchRequest
    let sectionNameKeyPath: String?
    var sectionNaming: ((Any?) -> String)?
    weak var client: (any ResultsTrackerClient)?
    /// The delegate of the controller; without one, the results are not kept up to date.
    weak var delegate: (any NSFetchedResultsControllerDelegate)?

    /// The results; `nil` before the first fetch.
    private(set) var list: ResultList?
    /// Grows with each change of the results.
    private(set) var generation = 0
    private(set) var work = Work()
    private var source: ResultSource?
    /// The functions that the context calls; `nil` before the first fetch.
    private var observer: EventObserver?
    /// Whether changes were missed, so that only a fetch can bring the results up to date.
    private var isStale = false
    private var waiting: [Occurrence] = []
    private var isFollowing = false

    init(_ request: any AnyFetchRequest, _ context: NSManagedObjectContext, sectionNameKeyPath: String?) {
        self.request = request
        self.context = context
        self.sectionNameKeyPath = sectionNameKeyPath
    }

    /// Fetches the results anew.
    ///
    /// - Parameter check: Throws if the results cannot take these objects.
    /// - Throws: Errors of the fetch and of `check`; `coreData` (134060) for objects that are not sorted by section;
    ///   `persistentStoreOperation` (134070) for a section name key path that leads nowhere. After an error, the
    ///   results are as before.
    func performFetch(_ check: ([NSManagedObject]) throws -> Void) throws {
        context.assertCurrent("performFetch()")
        context.endEvent(isMerge: false)
        let source = try ResultSource(
            request,
            sectionNameKeyPath: sectionNameKeyPath,
            naming: sectionNaming,
            context
        )
        var objects = try fetch(source)
        try check(objects)
        var (list, torn) = try sectioned(objects, source)
        if torn != nil {
            // The sort may have used values that changed before the sections were named: an object that a
            // relationship leads to was deleted, or the context holds older values. Then the objects are sorted by
            // the values that they show.
            let found = objects
            objects = try context.failingWithReads { () throws in source.sortedInMemory(found) }
            (list, torn) = try sectioned(objects, source)
        }
        if let place = torn {
            let name = try source.sectionName(of: objects[place])
            throw CocoaError.described(
                .coreData,
                userInfo: [
                    NSLocalizedDescriptionKey:
                        "The fetched object at index \(place) belongs to section \"\(name)\", which other sections follow already. Sort by \"\(sectionNameKeyPath ?? "")\" first, so that sections are not torn apart.",
                    NSAffectedObjectsErrorKey: [objects[place]],
                ]
            )
        }
        self.source = source
        self.list = list
        isStale = false
        waiting = []
        generation += 1
        if observer == nil { observe() }
    }

    /// Lets the context call this tracker, as long as that lives.
    private func observe() {
        let observer = EventObserver(
            eventEnded: { [weak self] event in self?.eventEnded(event) },
            contextWasReset: { [weak self] in self?.contextWasReset() },
            storesMayHaveChanged: { [weak self] in self?.storesMayHaveChanged() }
        )
        self.observer = observer
        context.observers.add(observer)
    }

    private func fetch(_ source: ResultSource) throws -> [NSManagedObject] {
        work.fetches += 1
        return try source.fetch(in: context)
    }

    /// Makes the list of fetched objects, and finds the index of the first one that tears a section apart.
    private func sectioned(_ objects: [NSManagedObject], _ source: ResultSource) throws -> (ResultList, torn: Int?) {
        try context.failingWithReads {
            var list = ResultList(hasSections: sectionNameKeyPath != nil)
            let entries = objects.enumerated().map { ResultEntry($1, sequence: $0) }
            let torn = list.fill(try named(entries, source))
            return (list, torn)
        }
    }

    private func named(
        _ entries: [ResultEntry],
        _ source: ResultSource
    ) throws -> [(entry: ResultEntry, sectionName: String)] {
        try entries.map { ($0, try source.sectionName(of: $0.object)) }
    }

    /// The ID of an object, even if the context has forgotten the object in a reset.
    func id(of object: NSManagedObject) -> NSManagedObjectID {
        if object.context == nil, object.rowKey > 0, object.idIfKnown == nil,
            let store = context.openStore(at: object.rowStoreIndex)
        {
            return store.ids.id(key: object.rowKey, layout: object.layout, store: store)
        }
        return object.objectID
    }

    // MARK: - Events

    /// Something that happened to the context.
    private enum Occurrence {
        case event(ContextEvent)
        case reset
    }

    /// Follows an event of the context.
    private func eventEnded(_ event: ContextEvent) { follow(.event(event)) }

    /// Fetches the objects that represent the results after the context has forgotten all objects.
    ///
    /// The delegate is not notified, as on Apple's platforms: a program that resets a context fetches and shows
    /// everything anew. Later notifications describe changes of the results fetched here.
    private func contextWasReset() {
        waiting = []
        // The objects may not be used any more.
        list = nil
        isStale = false
        generation += 1
        guard delegate != nil else { return }
        catchingUp { try performFetch { _ in } }
    }

    /// Notes that the stores have changed in an unknown way.
    private func storesMayHaveChanged() {
        if delegate == nil { isStale = true } else { follow(.reset) }
    }

    /// Follows the occurrences in order: if a delegate makes changes while it is notified, then they are reported
    /// afterwards.
    private func follow(_ occurrence: Occurrence) {
        waiting.append(occurrence)
        guard !isFollowing else { return }
        isFollowing = true
        defer { isFollowing = false }
        while !waiting.isEmpty {
            switch waiting.removeFirst() {
            case .event(let event): followEvent(event)
            case .reset: followReset()
            }
        }
    }

    private func followReset() {
        guard let old = list, let source else { return }
        catchingUp { try refetch(source, touched: old.objects) }
    }

    private func followEvent(_ event: ContextEvent) {
        guard let source else { return }
        guard list != nil else {
            // The fetch after a reset has failed.
            if isStale, delegate != nil { catchingUp { try performFetch { _ in } } }
            return
        }
        let objects = event.objects.filter(source.concerns)
        let unregistered = event.unregistered.filter(source.concerns)
        let isIndirect = source.isAffectedIndirectly(by: event)
        guard isIndirect || !objects.isEmpty || !unregistered.isEmpty else { return }
        guard delegate != nil else {
            isStale = true
            return
        }
        catchingUp {
            let isMany = unregistered.count > max(256, (list?.count ?? 0) / 2)
            if isStale || isIndirect || isMany || source.plan.offset > 0 {
                try refetch(source, touched: objects)
            } else {
                try follow(objects, unregistered: unregistered, source: source)
            }
        }
    }

    private func catchingUp(_ body: () throws -> Void) {
        do {
            try body()
        } catch {
            // No caller can receive the error here. The next event tries again.
            isStale = true
            context.coordinator?.report(error, "updating the results of \(request)")
        }
    }

    // MARK: - Following changes in memory

    /// The effect of changed objects on the list.
    private struct Delta {
        var removed: [ResultEntry] = []
        var repositioned: [(entry: ResultEntry, sectionName: String)] = []
        var updated: [ResultEntry] = []
        var inserted: [(object: NSManagedObject, keys: [PredicateValue], sectionName: String)] = []

        var isEmpty: Bool { removed.isEmpty && repositioned.isEmpty && updated.isEmpty && inserted.isEmpty }
        var isOnlyUpdates: Bool { removed.isEmpty && repositioned.isEmpty && inserted.isEmpty }
    }

    private func follow(
        _ objects: [NSManagedObject],
        unregistered: [ChangeMessage.Change],
        source: ResultSource
    ) throws {
        var objects = objects
        var seen = Set(unregistered.isEmpty ? [] : objects.map(ObjectIdentifier.init))
        for change in unregistered {
            let storeIndex = Int32(change.store.index)
            let object =
                context.registered(key: change.key, layout: change.layout, storeIndex: storeIndex)
                ?? change.temporaryID.map { context.makeForeignFault($0, storeIndex: storeIndex) }
                ?? context.makeFault(key: change.key, layout: change.layout, storeIndex: storeIndex)
            if seen.insert(ObjectIdentifier(object)).inserted { objects.append(object) }
        }
        if try source.warmUp(objects, in: context) { work.fetches += 1 }
        // If a row cannot be read, it is unknown whether it belongs to the results.
        let delta: Delta = try context.failingWithReads { try self.delta(objects, source) }
        guard !delta.isEmpty else { return }
        if source.plan.limit > 0, !delta.isOnlyUpdates { return try refetch(source, touched: objects) }
        let generation = generation
        client?.willChange()
        // The delegate may have fetched anew.
        guard generation == self.generation else { return }
        let (changes, failure) = context.collectingFailure { apply(delta, source) }
        client?.didChange(changes)
        // Some objects were compared with one that could not be read: all are in the list, but their order may be
        // wrong.
        if let failure { throw failure }
    }

    private func delta(_ objects: [NSManagedObject], _ source: ResultSource) throws -> Delta {
        guard let list else { return Delta() }
        var delta = Delta()
        work.evaluations += objects.count
        for (object, belongs) in zip(objects, try source.includes(objects, in: context)) {
            let entry = list.entry(of: object)
            if let entry, belongs {
                let name = try list.hasSections ? source.sectionName(of: object) : ""
                let keys = source.keys(of: object)
                if name == entry.section?.name, entry.keys.map({ source.compare($0, keys) == .orderedSame }) ?? false {
                    delta.updated.append(entry)
                } else {
                    delta.repositioned.append((entry, name))
                }
            } else if let entry {
                delta.removed.append(entry)
            } else if belongs {
                let keys = source.keys(of: object)
                guard !isBeyondLimit(keys, source) else { continue }
                let name = try list.hasSections ? source.sectionName(of: object) : ""
                delta.inserted.append((object, keys, name))
            }
        }
        return delta
    }

    /// Whether the results have reached their limit, and all sort before an object with these keys.
    private func isBeyondLimit(_ keys: [PredicateValue], _ source: ResultSource) -> Bool {
        guard source.plan.limit > 0, let list, list.count >= source.plan.limit, let last = list.last else {
            return false
        }
        // The keys are not kept in the entry: the last object may have changed too, and only its former keys show
        // that.
        return source.compare(last.keys ?? source.keys(of: last.object), keys) == .orderedAscending
    }

    private func keysOfEntry(_ entry: ResultEntry, _ source: ResultSource) -> [PredicateValue] {
        if let keys = entry.keys { return keys }
        let keys = source.keys(of: entry.object)
        entry.keys = keys
        return keys
    }

    private func isBefore(_ lhs: ResultEntry, _ rhs: ResultEntry, in source: ResultSource) -> Bool {
        work.comparisons += 1
        switch source.compare(keysOfEntry(lhs, source), keysOfEntry(rhs, source)) {
        case .orderedAscending: return true
        case .orderedDescending: return false
        case .orderedSame:
            switch source.compareIDs(lhs.object, rhs.object) {
            case .orderedAscending: return true
            case .orderedDescending: return false
            case .orderedSame: return lhs.sequence < rhs.sequence
            }
        }
    }

    /// Moves entries according to the delta.
    private func apply(_ delta: Delta, _ source: ResultSource) -> ResultChanges {
        guard var list = self.list else {
            return ResultChanges([], formerSections: nil, list: ResultList(hasSections: false))
        }
        // If the tracker kept its copy, then each change of the list would copy its dictionaries.
        self.list = nil
        let former = list.sections
        func place(_ entry: ResultEntry) -> ResultChanges.Place? {
            entry.section.map { ResultChanges.Place(section: $0, row: $0.entries.place(of: entry)) }
        }
        var touched = delta.updated.map { ResultChanges.Touched($0, old: place($0), mayHaveMoved: false) }
        touched += delta.removed.map { ResultChanges.Touched($0, old: place($0)) }
        touched += delta.repositioned.map { ResultChanges.Touched($0.entry, old: place($0.entry)) }
        list.remove(delta.removed)
        list.remove(delta.repositioned.map(\.entry))
        var incoming: [(entry: ResultEntry, sectionName: String)] = []
        for (entry, name) in delta.repositioned {
            entry.keys = source.keys(of: entry.object)
            incoming.append((entry, name))
        }
        for (object, keys, name) in delta.inserted {
            let entry = list.makeEntry(for: object)
            entry.keys = keys
            touched.append(ResultChanges.Touched(entry, old: nil))
            incoming.append((entry, name))
        }
        incoming.sort { isBefore($0.entry, $1.entry, in: source) }
        let sectionsChanged = list.insert(incoming) { isBefore($0, $1, in: source) }
        self.list = list
        generation += 1
        return ResultChanges(touched, formerSections: sectionsChanged ? former : nil, list: list)
    }

    // MARK: - Fetching anew and comparing

    private func refetch(_ source: ResultSource, touched: [NSManagedObject]) throws {
        let objects = try fetch(source)
        guard let old = list else { return }
        let touched = Set(touched.map(RowName.init))
        var known: [RowName: ResultEntry] = Dictionary(minimumCapacity: old.count)
        var before: [ResultEntry] = []
        before.reserveCapacity(old.count)
        old.forEach {
            known[RowName($0.object)] = $0
            before.append($0)
        }
        var isSame = objects.count == old.count
        var reported = false
        var next: [(entry: ResultEntry, sectionName: String)] = []
        next.reserveCapacity(objects.count)
        let names = try context.failingWithReads { try objects.map { try source.sectionName(of: $0) } }
        for (place, object) in objects.enumerated() {
            let row = RowName(object)
            let entry = known.removeValue(forKey: row) ?? ResultEntry(object, sequence: 0)
            let name = names[place]
            if isSame, before[place] !== entry || (old.hasSections && entry.section?.name != name) { isSame = false }
            if touched.contains(row) { reported = true }
            next.append((entry, name))
        }
        isStale = false
        guard !isSame || reported else { return }
        let generation = generation
        client?.willChange()
        guard generation == self.generation, let list else { return }
        client?.didChange(replace(list, from: before, by: next, objects: objects, touched: touched))
    }

    private func replace(
        _ list: ResultList,
        from before: [ResultEntry],
        by next: [(entry: ResultEntry, sectionName: String)],
        objects: [NSManagedObject],
        touched: Set<RowName>
    ) -> ResultChanges {
        var list = list
        let former = list.sections
        var places: [ResultChanges.Touched] = []
        places.reserveCapacity(before.count)
        for section in former {
            var row = 0
            section.entries.forEach { entry in
                let place = ResultChanges.Place(section: section, row: row)
                let hasChanged = touched.contains(RowName(entry.object))
                places.append(ResultChanges.Touched(entry, old: place, hasChanged: hasChanged))
                row += 1
            }
        }
        // An entry that is not put into a section again is no longer a result.
        for entry in before { entry.section = nil }
        for ((entry, _), object) in zip(next, objects) {
            entry.object = object
            entry.keys = nil
        }
        let isOld = Set(before.map(ObjectIdentifier.init))
        list.fill(next)
        for (entry, _) in next where !isOld.contains(ObjectIdentifier(entry)) {
            places.append(ResultChanges.Touched(entry, old: nil))
        }
        self.list = list
        generation += 1
        return ResultChanges(places, formerSections: former, list: list)
    }
}
