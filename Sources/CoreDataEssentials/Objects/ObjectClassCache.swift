import StrataLocks
import StrataRows
import Synchronization

/// The remembered class of one entity's objects.
final class ObjectClassCache: Sendable {
    private struct State {
        var type: NSManagedObject.Type?
        var generation = -1
        /// The first class that the program has used with this entity, if several classes have the name.
        var chosen: NSManagedObject.Type?
    }

    private let state = Locked(State())
    /// The generation of names in which the class was last found to be unambiguous.
    private let settledGeneration = AtomicCell(-1)

    /// Notes that the program uses a class for `entity`; if several classes have the model's name, then this decides.
    @inline(never)
    func registerClass(_ type: NSManagedObject.Type, for entity: NSEntityDescription) {
        guard ManagedClasses.register(type), ManagedClasses.matches(entity.managedObjectClassName ?? "", type) else {
            return
        }
        state.withLock { state in
            guard state.chosen == nil else { return }
            state.chosen = type
            state.type = nil
        }
    }

    /// Makes the entity's objects of a class that the model does not name.
    func makeObjects(of type: NSManagedObject.Type) {
        state.withLock { state in
            state.chosen = type
            state.type = nil
        }
    }

    /// The class that the entity's objects are made of.
    ///
    /// It is the class that the model names, else that of the super-entity, else `NSManagedObject`.
    func type(of entity: NSEntityDescription) -> NSManagedObject.Type {
        let generation = ManagedClasses.generation
        if let known = state.withLock({ $0.generation == generation ? $0.type : nil }) { return known }
        let type: NSManagedObject.Type
        if case .found(let found) = meaning(of: entity) {
            type = found
        } else {
            type = entity.superentity.map { $0.objectClass.type(of: $0) } ?? NSManagedObject.self
        }
        state.withLock { state in
            // Another thread may have chosen a class meanwhile.
            state.type = state.chosen ?? type
            state.generation = generation
        }
        return type
    }

    /// The reason why objects of `entity` may not be of the class that the model names; `nil` if there is no doubt.
    func trouble(with entity: NSEntityDescription) -> String? {
        let name = entity.managedObjectClassName ?? ""
        let classes = ManagedClasses.candidates(for: name)
        guard classes.count != 1 else { return nil }
        guard !classes.isEmpty else { return "the program has no subclass of NSManagedObject named \"\(name)\"" }
        let names = classes.map { ManagedClasses.fullName(of: $0) }.sorted().joined(separator: " and ")
        return "several classes are named \"\(name)\", \(names): give its name in the model with the module"
    }

    /// The reason why objects of `entity` cannot be made although the program has classes for them; `nil` if they
    /// can.
    ///
    /// The reason is that several modules have a class of the name, and no use determines which one is meant. Every
    /// fetch and insertion calls this method. It takes a lock only if names may have new meanings since the last
    /// call.
    func doubt(about entity: NSEntityDescription) -> String? {
        let generation = ManagedClasses.generation
        if settledGeneration.load(ordering: .relaxed) == generation { return nil }
        guard !entity.isAbstract, ManagedClasses.isOfSeveralModules(entity.managedObjectClassName ?? ""),
            case .ambiguous = meaning(of: entity), let trouble = trouble(with: entity)
        else {
            settledGeneration.store(generation, ordering: .relaxed)
            return nil
        }
        return "Objects of entity \(entity.name ?? "") cannot be made: \(trouble)."
    }

    private func meaning(of entity: NSEntityDescription) -> ManagedClasses.Meaning {
        if let chosen = state.withLock({ $0.chosen }) { return .found(chosen) }
        return ManagedClasses.find(entity.managedObjectClassName ?? "NSManagedObject")
    }
}

extension NSEntityDescription {
    /// Notes the class of an object of the entity that the program has made and inserted.
    ///
    /// Every insertion calls this method. It takes a lock only if the previous object was of another class, and
    /// counts no reference.
    @inline(__always)
    final func registerObjectClass(_ type: NSManagedObject.Type) {
        let number = UInt(bitPattern: ObjectIdentifier(type))
        guard lastObjectType.load(ordering: .relaxed) != number else { return }
        objectClass.registerClass(type, for: self)
        lastObjectType.store(number, ordering: .relaxed)
    }
}

extension NSEntityDescription {
    /// Lets the objects of the entity be of a class of the layer above, whatever the model names.
    ///
    /// - Parameter type: The class.
    package final func makeObjects(of type: NSManagedObject.Type) { objectClass.makeObjects(of: type) }
}

extension EntityLayout {
    /// The class that the entity's objects are made of.
    var objectType: NSManagedObject.Type { objectClass.type(of: entity) }

    /// Advice for the case that the class of objects is not the one that code expects.
    package var classAdvice: String {
        if let trouble = objectClass.trouble(with: entity) { return "For \(entity.name ?? "") \(trouble)." }
        return
            "The model names class \"\(entity.managedObjectClassName ?? "")\": give it the name of your class, with its module if there is doubt."
    }
}
