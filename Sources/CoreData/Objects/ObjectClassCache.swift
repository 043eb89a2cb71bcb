import StrataRows
import Synchronization

/// The class of one entity's objects, remembered.
final class ObjectClassCache: Sendable {
    private struct State {
        var type: NSManagedObject.Type?
        var generation = -1
        /// Which of several classes with the name the program has used with this entity first.
        var chosen: NSManagedObject.Type?
    }

    private let state = Mutex(State())
    /// The generation of names for which it is known that the class is in no doubt.
    private let settledGeneration = Atomic(-1)

    /// Notes that the program uses a class for `entity`, which settles the class if several have the name that the model gives.
    @inline(never)
    func noteUse(of type: NSManagedObject.Type, for entity: NSEntityDescription) {
        guard ManagedClasses.register(type), ManagedClasses.matches(entity.managedObjectClassName ?? "", type) else {
            return
        }
        state.withLock { state in
            guard state.chosen == nil else { return }
            state.chosen = type
            state.type = nil
        }
    }

    /// The class that the entity's objects are made of: the one named by the model, else that of the super-entity, else
    /// `NSManagedObject`.
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
            // Another thread may have chosen meanwhile.
            state.type = state.chosen ?? type
            state.generation = generation
        }
        return type
    }

    /// Why objects of `entity` may not be of the class that the model names; `nil` if there is no doubt.
    func trouble(with entity: NSEntityDescription) -> String? {
        let name = entity.managedObjectClassName ?? ""
        let classes = ManagedClasses.candidates(for: name)
        guard classes.count != 1 else { return nil }
        guard !classes.isEmpty else { return "the program has no subclass of NSManagedObject named \"\(name)\"" }
        let names = classes.map { String(reflecting: $0) }.sorted().joined(separator: " and ")
        return "several classes are named \"\(name)\", \(names): give its name in the model with the module"
    }

    /// Why objects of `entity` cannot be made, though the program has classes for them: modules share the name, and no use says
    /// which one is meant; `nil` if they can.
    ///
    /// Takes a lock only if names may mean more than when it was last asked: every fetch and insertion comes by here.
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
    /// Takes a lock only if the object before it was of another class, and counts no reference: every insertion comes by here.
    @inline(__always)
    final func noteObject(of type: NSManagedObject.Type) {
        let number = UInt(bitPattern: ObjectIdentifier(type))
        guard lastObjectType.load(ordering: .relaxed) != number else { return }
        objectClass.noteUse(of: type, for: self)
        lastObjectType.store(number, ordering: .relaxed)
    }
}

extension EntityLayout {
    /// The class that the entity's objects are made of.
    var objectType: NSManagedObject.Type { objectClass.type(of: entity) }

    /// What to do about objects whose class is not the one that code expects.
    var classAdvice: String {
        if let trouble = objectClass.trouble(with: entity) { return "For \(entity.name ?? "") \(trouble)." }
        return
            "The model names class \"\(entity.managedObjectClassName ?? "")\": give it the name of your class, with its module if there is doubt."
    }
}
