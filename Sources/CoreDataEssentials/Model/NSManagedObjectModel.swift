import StrataKeys
import StrataLocks
import StrataPredicates
import StrataRows

/// A description of the possible contents of a store: entities, their properties, and named queries.
///
/// Build one in code, or read one that Xcode has edited with ``init(contentsOf:)``. A model can be changed until the
/// first coordinator takes it. Then it is checked and frozen: every setter stops the program, any thread may read it,
/// and it stays in memory until the process ends. `copy()` returns a copy that can be changed.
///
/// See <doc:Models>.
///
/// ```swift
/// let model = try NSManagedObjectModel(for: Venue.self, City.self)
/// print(model.entitiesByName.keys.sorted())
/// ```
open class NSManagedObjectModel: NSObject, NSCopying, ModelElement, LinkTarget, @unchecked Sendable {
    // @unchecked Sendable: it is mutable only until `isFrozen`, while one thread builds the model, and immutable
    // afterwards.

    /// The name of the configuration that holds all entities.
    package static let defaultConfigurationName = "PF_DEFAULT_CONFIGURATION_NAME"

    let anchor = LinkAnchor()
    /// The data that freezing computed; it also marks the model as frozen.
    private let frozenModel = OnceReference<FrozenModel>()

    /// Creates an empty model, to be filled in code.
    public required override init() {
        super.init()
    }

    // MARK: - Entities

    /// All entities, including sub-entities.
    ///
    /// If an entity is set here, then its sub-entities are added too.
    ///
    /// ```swift
    /// let venue = NSEntityDescription()
    /// venue.name = "Venue"
    /// let model = NSManagedObjectModel()
    /// model.entities = [venue]
    /// ```
    open var entities: [NSEntityDescription] {
        get { allEntities }
        set {
            assertMutable()
            adoptEntities(newValue)
        }
    }

    private var allEntities: [NSEntityDescription] = []

    /// The entities by name.
    ///
    /// ```swift
    /// print(model.entitiesByName["Venue"]?.attributesByName.keys.sorted() ?? [])
    /// ```
    open var entitiesByName: [String: NSEntityDescription] {
        frozenModel.load()?.entitiesByName ?? EntityFacts.byName(allEntities) { $0.name }
    }

    private func adoptEntities(_ entities: [NSEntityDescription]) {
        var seen = Set<ObjectIdentifier>()
        var all: [NSEntityDescription] = []
        func add(_ entity: NSEntityDescription) {
            guard seen.insert(ObjectIdentifier(entity)).inserted else { return }
            if let model = entity.model, model !== self {
                fatalError("\(entity.subject) was added to a second model; an entity has one model, so add a copy.")
            }
            all.append(entity)
        }
        func addSubentities(of entity: NSEntityDescription) {
            for child in entity.subentities where !seen.contains(ObjectIdentifier(child)) {
                add(child)
                addSubentities(of: child)
            }
        }
        entities.forEach(add)
        entities.forEach(addSubentities)
        for entity in allEntities {
            entity.modelLink.target = nil
        }
        allEntities = all
        for entity in all {
            entity.modelLink.target = self
        }
        for (name, members) in membersByConfiguration {
            membersByConfiguration[name] = members.filter { seen.contains(ObjectIdentifier($0)) }
        }
    }

    // MARK: - Configurations

    package private(set) var membersByConfiguration: [String: [NSEntityDescription]] = [:]

    /// The names of the configurations: first the default one, which holds all entities, then the others by name.
    open var configurations: [String] {
        [Self.defaultConfigurationName] + membersByConfiguration.keys.sorted()
    }

    /// The entities of a configuration.
    ///
    /// - Parameter configuration: A name, or `nil` for the default configuration with all entities.
    /// - Returns: The entities that it lists, or `nil` if there is no configuration with that name. A store of the
    ///   configuration also holds their sub-entities.
    open func entities(forConfigurationName configuration: String?) -> [NSEntityDescription]? {
        guard let configuration, configuration != Self.defaultConfigurationName else { return allEntities }
        return membersByConfiguration[configuration]
    }

    /// The entities that a store of a configuration holds: those that it lists, and all their sub-entities.
    ///
    /// - Parameter configuration: A name, or `nil` for the default configuration with all entities.
    /// - Returns: The entities, each once, or `nil` if there is no configuration with that name.
    package func storedEntities(forConfigurationName configuration: String?) -> [NSEntityDescription]? {
        guard let listed = entities(forConfigurationName: configuration) else { return nil }
        guard let configuration, configuration != Self.defaultConfigurationName,
            configuration != Self.exactConfigurationName
        else { return listed }
        var seen = Set(listed.map(ObjectIdentifier.init))
        var all = listed
        var next = 0
        while next < all.count {
            for child in all[next].subentities where seen.insert(ObjectIdentifier(child)).inserted { all.append(child) }
            next += 1
        }
        return all
    }

    /// The name of a configuration that lists exactly the entities of a store, and excludes other sub-entities.
    package static let exactConfigurationName = "Strata.StoreEntities"

    /// Makes or replaces a configuration.
    ///
    /// A store of the configuration also holds the sub-entities of its members, whether these are listed or not.
    ///
    /// If an entity is not in the model, then the program stops.
    ///
    /// - Parameters:
    ///   - entities: The members, which replace the former ones.
    ///   - configuration: The name of the configuration.
    open func setEntities(_ entities: [NSEntityDescription], forConfigurationName configuration: String) {
        assertMutable()
        for entity in entities where entity.model !== self {
            fatalError("\(entity.subject) was put into configuration \"\(configuration)\", but is not in the model.")
        }
        membersByConfiguration[configuration] = entities
    }

    // MARK: - Fetch request templates

    private(set) var templates: [String: NSFetchRequest<NSFetchRequestResult>] = [:]

    /// The named queries.
    ///
    /// Copy one before you change it.
    open var fetchRequestTemplatesByName: [String: NSFetchRequest<NSFetchRequestResult>] { templates }

    /// The named query, or `nil`.
    ///
    /// Copy it before you change it.
    ///
    /// - Parameter name: The name of the query in the model.
    /// - Returns: The query itself, which may not be changed once the model is in use. Copy it, or use
    ///   ``fetchRequestFromTemplate(withName:substitutionVariables:)``.
    open func fetchRequestTemplate(forName name: String) -> NSFetchRequest<NSFetchRequestResult>? {
        templates[name]
    }

    /// Adds, replaces or (with `nil`) removes a named query.
    ///
    /// The model keeps a copy.
    ///
    /// ```swift
    /// let cheap = NSFetchRequest<any NSFetchRequestResult>(entityName: "Venue")
    /// cheap.predicate = NSPredicate(format: "price < $limit")
    /// let model = NSManagedObjectModel()
    /// model.setFetchRequestTemplate(cheap, forName: "cheap")
    /// ```
    ///
    /// - Parameters:
    ///   - fetchRequestTemplate: The query; `nil` removes it.
    ///   - name: Its name.
    open func setFetchRequestTemplate(
        _ fetchRequestTemplate: NSFetchRequest<NSFetchRequestResult>?,
        forName name: String
    ) {
        assertMutable()
        templates[name] = fetchRequestTemplate?.duplicate()
    }

    // MARK: - Versions

    /// Labels for this version of the model.
    ///
    /// They are kept in a store's metadata and are not part of the hashes.
    open var versionIdentifiers: Set<AnyHashable> = [] { willSet { assertMutable() } }

    /// The 32-byte version hash of each entity.
    ///
    /// A store can be opened with a model whose hashes equal those in its metadata.
    ///
    /// - Complexity: O(1) once the model is in use, O(number of properties) before.
    open var entityVersionHashesByName: [String: Data] {
        if let frozen = frozenModel.load() { return frozen.versionHashes }
        var hashes = VersionHash.Entities()
        return entitiesByName.mapValues { hashes.hash(of: $0) }
    }

    /// One text for all version hashes: 32 bytes in Base64.
    ///
    /// - Complexity: O(number of entities) for each read, and O(number of properties) as long as the model is not in
    ///   use.
    open var versionChecksum: String { SchemaHashes.checksum(of: entityVersionHashesByName) }

    /// Localized names, under keys such as `Entity/Venue` and `Property/name/Entity/Venue`.
    open var localizationDictionary: [String: String]? { willSet { assertMutable() } }

    // MARK: - Freezing

    var isFrozen: Bool { frozenModel.load() != nil }

    var subject: String { "the model" }

    /// The numbers and dictionaries of a model in use.
    ///
    /// If no coordinator has taken the model yet, then the program stops.
    package var frozen: FrozenModel {
        guard let frozen = frozenModel.load() else {
            fatalError("The model is not in use yet; a coordinator must take it before its entities have numbers.")
        }
        return frozen
    }

    /// Checks the model and makes it immutable and immortal.
    ///
    /// It does nothing if the model is frozen already.
    ///
    /// If the model is not valid, then the program stops; see ``tryFreeze()`` for the form that throws.
    package func freeze() {
        do {
            try tryFreeze()
        } catch {
            fatalError("The model cannot be used: \(error.localizedDescription)")
        }
    }

    /// Checks the model and makes it immutable and immortal.
    ///
    /// It does nothing if the model is frozen already. Any thread may call it; if several do at once, then one does the
    /// work and the others wait.
    ///
    /// - Throws: The errors of ``validate()``; the model can still be changed in that case.
    package func tryFreeze() throws {
        guard !isFrozen else { return }
        try immortalModels.withLock { models in
            guard !isFrozen else { return }
            try validate()
            _ = frozenModel.storeIfNil(freezeEntities())
            models.append(self)
        }
    }

    private func freezeEntities() -> FrozenModel {
        let ordered = EntityNumbering.order(allEntities)
        let numbers = Dictionary(uniqueKeysWithValues: zip(ordered.map(ObjectIdentifier.init), 1...))
        // The entities are visited from last to first, so that the ranges of sub-entities are known; these have numbers
        // after their parent.
        var subtrees: [ObjectIdentifier: ClosedRange<Int>] = [:]
        for entity in ordered.reversed() {
            let own = numbers[ObjectIdentifier(entity)] ?? 0
            let last = entity.subentities.compactMap { subtrees[ObjectIdentifier($0)]?.upperBound }.max() ?? own
            subtrees[ObjectIdentifier(entity)] = own...last
        }
        // All data is computed before anything is frozen, for each super-entity before its sub-entities.
        var hashes = VersionHash.Entities()
        let facts = zip(ordered, 1...).map { entity, number in
            let subtree = subtrees[ObjectIdentifier(entity)] ?? number...number
            return EntityFacts(
                entity: entity,
                model: self,
                number: number,
                subtree: subtree,
                concreteNumbers: subtree.filter { !ordered[$0 - 1].isAbstract },
                versionHash: hashes.hash(of: entity)
            )
        }
        for (entity, facts) in zip(ordered, facts) {
            entity.freeze(facts)
        }
        var stored: [String: [NSEntityDescription]] = [:]
        for name in membersByConfiguration.keys { stored[name] = storedEntities(forConfigurationName: name) }
        let schema = Schema(ordered, configurations: stored)
        for (entity, layout) in zip(ordered, schema.entities) { entity.adopt(layout) }
        for template in templates.values {
            template.freeze()
        }
        return FrozenModel(entities: ordered, schema)
    }

    // MARK: - Comparing

    /// Whether `object` is a model with equal entities, configurations, fetch request templates and version identifiers.
    ///
    /// So two models read from one file are equal, and so is a copy.
    ///
    /// - Complexity: O(size of the model), unless it is this very model.
    open override func isEqual(_ object: Any?) -> Bool {
        guard let other = object as? NSManagedObjectModel else { return false }
        return other === self || ModelEquality.areEqual(self, other)
    }

    /// A hash that agrees with ``isEqual(_:)``.
    ///
    /// It is computed from the names of the entities, which should not change while a set contains the model.
    open override var hash: Int { Set(entities.map(\.name)).hashValue }

    // MARK: - Copying

    /// Returns an independent copy of the model with all its parts, which can be changed.
    ///
    /// - Parameter zone: Ignored.
    /// - Returns: A model of the same class.
    /// - Complexity: O(*n*) in the number of entities and properties.
    open func copy(with zone: NSZone? = nil) -> Any {
        let copy = type(of: self).init()
        var copier = ModelCopier(unresolvedDestinations: .byName)
        copier.copy([self], into: copy)
        return copy
    }

    /// Sets the configurations and templates that a copier made.
    func adopt(
        configurations: [String: [NSEntityDescription]],
        templates: [String: NSFetchRequest<NSFetchRequestResult>]
    ) {
        membersByConfiguration = configurations
        self.templates = templates
    }
}

/// All frozen models, which are kept alive because rows and objects refer to their parts without counting references.
let immortalModels = Locked<[NSManagedObjectModel]>([])
