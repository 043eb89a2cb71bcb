import CoreData
import Foundation
import Observation

/// The results of a fetch, which follow the changes of the stores.
///
/// The results are brought up to date when the context saves, merges a save of another context of its container, fetches,
/// or ends an event (``ModelContext/processPendingChanges()``). The contexts of its container also merge what other
/// processes write, as soon as there is such an observer. Observers of ``results`` and ``sections`` are called if
/// they change. The observer is used where its context is used.
///
/// ```swift
/// let trips = try ResultsObserver<Trip, Never>(sortBy: [SortDescriptor(\.name)], modelContext: context)
/// withObservationTracking { print(trips.results.map(\.name)) } onChange: { print("the trips have changed") }
/// ```
public final class ResultsObserver<Element: PersistentModel, SectionTitle: Hashable>: Observable,
    CustomDebugStringConvertible
{
    /// The context whose changes are followed.
    public let modelContext: ModelContext
    /// The key path of the title of a result's section; `nil` if there are no sections.
    public let sectionBy: PartialKeyPath<Element>?
    /// The reason why the last change of ``filterBy`` or ``sortBy`` was refused; `nil` if it was not.
    ///
    /// An addition to Apple's API. The results are as before then.
    public private(set) var refusal: (any Error)?
    private let registrar = ObservationRegistrar()
    private let title: ((Element) -> SectionTitle)?
    private var descriptor: FetchDescriptor<Element>
    private var controller: NSFetchedResultsController<NSManagedObject>
    private let follower = Follower()
    private var shown: FetchResultsCollection<Element>
    /// The sections of `shown`, once they were asked for.
    private var grouped: SectionedResults<Element, SectionTitle>?

    /// Passes the changes of the controller on, which holds it weakly.
    private final class Follower: NSObject, NSFetchedResultsControllerDelegate {
        var changed: () -> Void = {}

        func controllerDidChangeContent(_ controller: NSFetchedResultsController<NSFetchRequestResult>) { changed() }
    }

    private init(
        _ descriptor: FetchDescriptor<Element>,
        _ sectionBy: PartialKeyPath<Element>?,
        _ context: ModelContext,
        _ title: ((Element) -> SectionTitle)?
    ) throws {
        modelContext = context
        self.descriptor = descriptor
        self.sectionBy = sectionBy
        self.title = title
        try context.container.followOtherProcesses()
        let controller = try Self.controller(descriptor, context, follower)
        self.controller = controller
        shown = FetchResultsCollection(
            context: context,
            objects: context.onQueue { controller.fetchedObjects ?? [] }
        )
        follower.changed = { [weak self] in self?.update() }
    }

    /// The controller of a description, whose results are fetched.
    private static func controller(
        _ descriptor: FetchDescriptor<Element>,
        _ context: ModelContext,
        _ follower: Follower
    ) throws -> NSFetchedResultsController<NSManagedObject> {
        let request = try context.request(descriptor)
        return try context.onQueue {
            let controller = NSFetchedResultsController(
                fetchRequest: request,
                managedObjectContext: context.managed,
                sectionNameKeyPath: nil,
                cacheName: nil
            )
            controller.delegate = follower
            try context.describing(descriptor, request) { try controller.performFetch() }
            return controller
        }
    }

    // MARK: - The fetch

    /// The description of the fetch.
    public var fetchDescriptor: FetchDescriptor<Element> {
        registrar.access(self, keyPath: \.fetchDescriptor)
        return descriptor
    }

    /// The condition; `nil` for all objects.
    ///
    /// A new one is fetched at once. One that stores do not support is refused: see ``refusal``.
    public var filterBy: Predicate<Element>? {
        get { fetchDescriptor.predicate }
        set { replace { $0.predicate = newValue } }
    }

    /// The order.
    ///
    /// A new one is fetched at once. One that stores do not support is refused: see ``refusal``.
    public var sortBy: [SortDescriptor<Element>] {
        get { fetchDescriptor.sortBy }
        set { replace { $0.sortBy = newValue } }
    }

    private func replace(_ change: (inout FetchDescriptor<Element>) -> Void) {
        var wanted = descriptor
        change(&wanted)
        do {
            let made = try Self.controller(wanted, modelContext, follower)
            refusal = nil
            registrar.withMutation(of: self, keyPath: \.fetchDescriptor) {
                descriptor = wanted
                modelContext.onQueue { controller = made }
            }
            modelContext.onQueue { update() }
        } catch {
            refusal = error
        }
    }

    // MARK: - Results

    /// The results, in order.
    public var results: FetchResultsCollection<Element> {
        get {
            registrar.access(self, keyPath: \.results)
            return modelContext.onQueue { shown }
        }
        set { modelContext.onQueue { show(newValue) } }
    }

    /// The results by their titles; `nil` if there are no sections.
    ///
    /// - Complexity: O(number of results) after a change.
    public var sections: SectionedResults<Element, SectionTitle>? {
        get {
            registrar.access(self, keyPath: \.sections)
            guard let title else { return nil }
            return modelContext.onQueue {
                if let grouped { return grouped }
                let made = SectionedResults(shown, shown.map(title))
                grouped = made
                return made
            }
        }
        set {
            registrar.withMutation(of: self, keyPath: \.sections) { modelContext.onQueue { grouped = newValue } }
        }
    }

    /// The result at a place: that of its section and in it, or of the only section 0.
    ///
    /// - Parameter indexPath: The place, of two indices.
    /// - Returns: The result; `nil` if there is none.
    public func element(at indexPath: IndexPath) -> Element? {
        guard indexPath.count == 2 else { return nil }
        let (section, item) = (indexPath[0], indexPath[1])
        guard let sections else {
            return section == 0 && results.indices.contains(item) ? results[item] : nil
        }
        guard sections.indices.contains(section), sections[section].indices.contains(item) else { return nil }
        return sections[section][item]
    }

    /// The place of a result.
    ///
    /// - Parameter element: The result.
    /// - Returns: The index of its section, and its index there; `nil` if it is none of the results.
    /// - Complexity: O(number of results).
    public func indexPath(for element: Element) -> IndexPath? {
        guard let object = element.backing.object else { return nil }
        guard let sections else {
            return results.objects.firstIndex { $0 === object }.map { IndexPath(indexes: [0, $0]) }
        }
        for (section, results) in sections.enumerated() {
            if let item = results.elements.objects.firstIndex(where: { $0 === object }) {
                return IndexPath(indexes: [section, item])
            }
        }
        return nil
    }

    /// The class and the number of results.
    public var debugDescription: String {
        "ResultsObserver<\(Element.self)>(\(modelContext.onQueue { shown.count }) results)"
    }

    /// Takes over the controller's results, on the context's queue.
    private func update() {
        let objects = controller.fetchedObjects ?? []
        if objects.elementsEqual(shown.objects, by: ===) {
            // A title may have changed.
            guard title != nil else { return }
            return registrar.withMutation(of: self, keyPath: \.sections) { grouped = nil }
        }
        show(FetchResultsCollection(context: modelContext, objects: objects))
    }

    private func show(_ results: FetchResultsCollection<Element>) {
        registrar.withMutation(of: self, keyPath: \.results) {
            guard title != nil else { return shown = results }
            registrar.withMutation(of: self, keyPath: \.sections) { (shown, grouped) = (results, nil) }
        }
    }
}

// MARK: - Making

/// The context that an observer without one follows: the main one in the main actor, otherwise a separate one.
private func context(of container: ModelContainer, in isolation: (any Actor)?) -> ModelContext {
    guard isolation === MainActor.shared else { return ModelContext(container) }
    nonisolated(unsafe) var context: ModelContext?  // The caller is in the main actor as well.
    MainActor.assumeIsolated { context = container.mainContext }
    return context ?? ModelContext(container)
}

extension FetchDescriptor {
    fileprivate init(_ filterBy: Predicate<T>?, _ sortBy: [SortDescriptor<T>]?) {
        self.init(predicate: filterBy, sortBy: sortBy ?? [])
    }
}

extension ResultsObserver where SectionTitle == Never {
    /// Fetches objects, and follows their changes.
    ///
    /// - Parameters:
    ///   - fetchDescriptor: The description of the objects.
    ///   - modelContext: The context.
    ///   - isolation: The actor of the caller.
    /// - Throws: The errors of `ModelContext.fetch(_:)`.
    public convenience init(
        fetchDescriptor: FetchDescriptor<Element> = FetchDescriptor<Element>(),
        modelContext: ModelContext,
        isolation: isolated (any Actor)? = #isolation
    ) throws {
        try self.init(fetchDescriptor, nil, modelContext, nil)
    }

    /// Fetches objects, and follows their changes.
    ///
    /// - Parameters:
    ///   - filterBy: The condition; `nil` for all objects.
    ///   - sortBy: The order.
    ///   - modelContext: The context.
    ///   - isolation: The actor of the caller.
    /// - Throws: The errors of `ModelContext.fetch(_:)`.
    @_disfavoredOverload
    public convenience init(
        filterBy: Predicate<Element>? = nil,
        sortBy: [SortDescriptor<Element>]? = nil,
        modelContext: ModelContext,
        isolation: isolated (any Actor)? = #isolation
    ) throws {
        try self.init(FetchDescriptor(filterBy, sortBy), nil, modelContext, nil)
    }

    /// Fetches objects, and follows their changes.
    ///
    /// - Parameters:
    ///   - fetchDescriptor: The description of the objects.
    ///   - modelContainer: The container. In the main actor its main context is followed, otherwise a separate one.
    ///   - isolation: The actor of the caller.
    /// - Throws: The errors of `ModelContext.fetch(_:)`.
    public convenience init(
        fetchDescriptor: FetchDescriptor<Element> = FetchDescriptor<Element>(),
        modelContainer: ModelContainer,
        isolation: isolated (any Actor)? = #isolation
    ) throws {
        try self.init(fetchDescriptor, nil, context(of: modelContainer, in: isolation), nil)
    }

    /// Fetches objects, and follows their changes.
    ///
    /// - Parameters:
    ///   - filterBy: The condition; `nil` for all objects.
    ///   - sortBy: The order.
    ///   - modelContainer: The container. In the main actor its main context is followed, otherwise a separate one.
    ///   - isolation: The actor of the caller.
    /// - Throws: The errors of `ModelContext.fetch(_:)`.
    @_disfavoredOverload
    public convenience init(
        filterBy: Predicate<Element>? = nil,
        sortBy: [SortDescriptor<Element>]? = nil,
        modelContainer: ModelContainer,
        isolation: isolated (any Actor)? = #isolation
    ) throws {
        try self.init(FetchDescriptor(filterBy, sortBy), nil, context(of: modelContainer, in: isolation), nil)
    }
}

extension ResultsObserver where SectionTitle == String {
    /// Fetches objects, and follows their changes, in sections.
    ///
    /// - Parameters:
    ///   - fetchDescriptor: The description of the objects.
    ///   - sectionBy: The key path of the titles.
    ///   - modelContext: The context.
    ///   - isolation: The actor of the caller.
    /// - Throws: The errors of `ModelContext.fetch(_:)`.
    public convenience init(
        fetchDescriptor: FetchDescriptor<Element> = FetchDescriptor<Element>(),
        sectionBy: KeyPath<Element, String>,
        modelContext: ModelContext,
        isolation: isolated (any Actor)? = #isolation
    ) throws {
        try self.init(fetchDescriptor, sectionBy, modelContext, { $0[keyPath: sectionBy] })
    }

    /// Fetches objects, and follows their changes, in sections.
    ///
    /// - Parameters:
    ///   - filterBy: The condition; `nil` for all objects.
    ///   - sortBy: The order.
    ///   - sectionBy: The key path of the titles.
    ///   - modelContext: The context.
    ///   - isolation: The actor of the caller.
    /// - Throws: The errors of `ModelContext.fetch(_:)`.
    @_disfavoredOverload
    public convenience init(
        filterBy: Predicate<Element>? = nil,
        sortBy: [SortDescriptor<Element>]? = nil,
        sectionBy: KeyPath<Element, String>,
        modelContext: ModelContext,
        isolation: isolated (any Actor)? = #isolation
    ) throws {
        try self.init(FetchDescriptor(filterBy, sortBy), sectionBy, modelContext, { $0[keyPath: sectionBy] })
    }

    /// Fetches objects, and follows their changes, in sections.
    ///
    /// - Parameters:
    ///   - fetchDescriptor: The description of the objects.
    ///   - sectionBy: The key path of the titles.
    ///   - modelContainer: The container. In the main actor its main context is followed, otherwise a separate one.
    ///   - isolation: The actor of the caller.
    /// - Throws: The errors of `ModelContext.fetch(_:)`.
    public convenience init(
        fetchDescriptor: FetchDescriptor<Element> = FetchDescriptor<Element>(),
        sectionBy: KeyPath<Element, String>,
        modelContainer: ModelContainer,
        isolation: isolated (any Actor)? = #isolation
    ) throws {
        try self.init(
            fetchDescriptor,
            sectionBy,
            context(of: modelContainer, in: isolation),
            { $0[keyPath: sectionBy] }
        )
    }

    /// Fetches objects, and follows their changes, in sections.
    ///
    /// - Parameters:
    ///   - filterBy: The condition; `nil` for all objects.
    ///   - sortBy: The order.
    ///   - sectionBy: The key path of the titles.
    ///   - modelContainer: The container. In the main actor its main context is followed, otherwise a separate one.
    ///   - isolation: The actor of the caller.
    /// - Throws: The errors of `ModelContext.fetch(_:)`.
    @_disfavoredOverload
    public convenience init(
        filterBy: Predicate<Element>? = nil,
        sortBy: [SortDescriptor<Element>]? = nil,
        sectionBy: KeyPath<Element, String>,
        modelContainer: ModelContainer,
        isolation: isolated (any Actor)? = #isolation
    ) throws {
        try self.init(
            FetchDescriptor(filterBy, sortBy),
            sectionBy,
            context(of: modelContainer, in: isolation),
            { $0[keyPath: sectionBy] }
        )
    }
}

extension ResultsObserver where SectionTitle == String {
    /// Fetches objects, and follows their changes, in sections.
    ///
    /// - Parameters:
    ///   - fetchDescriptor: The description of the objects.
    ///   - sectionBy: The key path of the titles; no value stands for an empty title.
    ///   - modelContext: The context.
    ///   - isolation: The actor of the caller.
    /// - Throws: The errors of `ModelContext.fetch(_:)`.
    public convenience init(
        fetchDescriptor: FetchDescriptor<Element> = FetchDescriptor<Element>(),
        sectionBy: KeyPath<Element, String?>,
        modelContext: ModelContext,
        isolation: isolated (any Actor)? = #isolation
    ) throws {
        try self.init(fetchDescriptor, sectionBy, modelContext, { $0[keyPath: sectionBy] ?? "" })
    }

    /// Fetches objects, and follows their changes, in sections.
    ///
    /// - Parameters:
    ///   - filterBy: The condition; `nil` for all objects.
    ///   - sortBy: The order.
    ///   - sectionBy: The key path of the titles; no value stands for an empty title.
    ///   - modelContext: The context.
    ///   - isolation: The actor of the caller.
    /// - Throws: The errors of `ModelContext.fetch(_:)`.
    @_disfavoredOverload
    public convenience init(
        filterBy: Predicate<Element>? = nil,
        sortBy: [SortDescriptor<Element>]? = nil,
        sectionBy: KeyPath<Element, String?>,
        modelContext: ModelContext,
        isolation: isolated (any Actor)? = #isolation
    ) throws {
        try self.init(FetchDescriptor(filterBy, sortBy), sectionBy, modelContext, { $0[keyPath: sectionBy] ?? "" })
    }

    /// Fetches objects, and follows their changes, in sections.
    ///
    /// - Parameters:
    ///   - fetchDescriptor: The description of the objects.
    ///   - sectionBy: The key path of the titles; no value stands for an empty title.
    ///   - modelContainer: The container. In the main actor its main context is followed, otherwise a separate one.
    ///   - isolation: The actor of the caller.
    /// - Throws: The errors of `ModelContext.fetch(_:)`.
    public convenience init(
        fetchDescriptor: FetchDescriptor<Element> = FetchDescriptor<Element>(),
        sectionBy: KeyPath<Element, String?>,
        modelContainer: ModelContainer,
        isolation: isolated (any Actor)? = #isolation
    ) throws {
        try self.init(
            fetchDescriptor,
            sectionBy,
            context(of: modelContainer, in: isolation),
            { $0[keyPath: sectionBy] ?? "" }
        )
    }

    /// Fetches objects, and follows their changes, in sections.
    ///
    /// - Parameters:
    ///   - filterBy: The condition; `nil` for all objects.
    ///   - sortBy: The order.
    ///   - sectionBy: The key path of the titles; no value stands for an empty title.
    ///   - modelContainer: The container. In the main actor its main context is followed, otherwise a separate one.
    ///   - isolation: The actor of the caller.
    /// - Throws: The errors of `ModelContext.fetch(_:)`.
    @_disfavoredOverload
    public convenience init(
        filterBy: Predicate<Element>? = nil,
        sortBy: [SortDescriptor<Element>]? = nil,
        sectionBy: KeyPath<Element, String?>,
        modelContainer: ModelContainer,
        isolation: isolated (any Actor)? = #isolation
    ) throws {
        try self.init(
            FetchDescriptor(filterBy, sortBy),
            sectionBy,
            context(of: modelContainer, in: isolation),
            { $0[keyPath: sectionBy] ?? "" }
        )
    }
}
