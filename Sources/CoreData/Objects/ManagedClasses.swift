import Foundation
import StrataRows
import Synchronization

/// Finds the class of an entity's objects, and the entity of a class.
///
/// A model names classes by text. Linux has no Objective-C runtime to look a bare name up in, so a class is known by its
/// module-qualified name, or once the program has used it: in `Venue(context:)`, `Venue(entity:insertInto:)`,
/// `NSFetchRequest<Venue>` or ``register(_:)``. Any thread may call any member.
enum ManagedClasses {
    private struct State {
        var byBareName: [String: NSManagedObject.Type] = [:]
        var registered: Set<ObjectIdentifier> = []
        /// The number of registrations: found classes are looked up anew when it has grown.
        var generation = 0
    }

    private static let state = Mutex(State())

    /// Makes a class known by its bare name.
    static func register(_ type: NSManagedObject.Type) {
        guard type != NSManagedObject.self, !state.withLock({ $0.registered.contains(ObjectIdentifier(type)) }) else {
            return
        }
        let name = bareName(of: type)
        state.withLock { state in
            guard state.registered.insert(ObjectIdentifier(type)).inserted else { return }
            state.byBareName[name] = type
            state.generation += 1
        }
    }

    static var generation: Int { state.withLock { $0.generation } }

    /// The class that a model's text names; `nil` if the program has no such class, or has not used it yet.
    static func find(_ className: String) -> NSManagedObject.Type? {
        if className == "NSManagedObject" { return NSManagedObject.self }
        let bare = className.split(separator: ".").last.map(String.init) ?? className
        if let known = state.withLock({ $0.byBareName[bare] }), matches(className, known) { return known }
        if className.contains("."), !className.hasPrefix("."),
            let found = NSClassFromString(className) as? NSManagedObject.Type
        {
            return found
        }
        return NSClassFromString(mainModule + "." + bare) as? NSManagedObject.Type
    }

    /// Whether `className`, as a model spells it, means `type`.
    static func matches(_ className: String, _ type: NSManagedObject.Type) -> Bool {
        let bare = bareName(of: type)
        guard className.hasSuffix(bare) else { return false }
        // Not `NSStringFromClass`, which stops the program for a class that is private or inside another type.
        return className == bare || className == "." + bare || className == String(reflecting: type)
    }

    static func bareName(of type: NSManagedObject.Type) -> String {
        // A nested class is `Outer.Inner` in full; a model can only say the last part.
        String(describing: type)
    }

    /// The module of the executable, in which bare names are looked up as they are on Apple's platforms.
    private static let mainModule: String = {
        let name = Bundle.main.executableURL?.lastPathComponent ?? ""
        return String(name.map { $0.isLetter || $0.isNumber ? $0 : "_" })
    }()
}

/// The class of one entity's objects, remembered.
final class ObjectClassCache: Sendable {
    private struct State {
        var type: NSManagedObject.Type?
        var generation = -1
    }

    private let state = Mutex(State())
    /// The class of which an object of the entity was last made, as a number.
    private let lastMade = Atomic<UInt>(0)

    /// Makes the class of an object that was made known by its bare name.
    ///
    /// Takes a lock only if the object before it was of another class.
    @inline(__always)
    func note(_ type: NSManagedObject.Type) {
        let number = UInt(bitPattern: ObjectIdentifier(type))
        guard lastMade.load(ordering: .relaxed) != number else { return }
        ManagedClasses.register(type)
        lastMade.store(number, ordering: .relaxed)
    }

    /// The class that the entity's objects are made of: the one named by the model, else that of the super-entity, else
    /// `NSManagedObject`.
    func type(of entity: NSEntityDescription) -> NSManagedObject.Type {
        let generation = ManagedClasses.generation
        if let known = state.withLock({ $0.generation == generation ? $0.type : nil }) { return known }
        var found = ManagedClasses.find(entity.managedObjectClassName ?? "NSManagedObject")
        var ancestor = entity.superentity
        while found == nil, let current = ancestor {
            found = ManagedClasses.find(current.managedObjectClassName ?? "NSManagedObject")
            ancestor = current.superentity
        }
        let type = found ?? NSManagedObject.self
        state.withLock { $0 = State(type: type, generation: generation) }
        return type
    }
}

/// The models in use, for code that names a class but no context.
enum FrozenModels {
    /// The entity of a class, in the model that was put to use last among those that have one.
    static func entity(for type: NSManagedObject.Type) -> NSEntityDescription {
        ManagedClasses.register(type)
        let models = immortalModels.withLock { $0 }
        for model in models.reversed() {
            if let entity = model.frozen.entity(for: type) { return entity }
        }
        fatalError(
            "CoreData: no model in use has an entity of class \(type). Make a coordinator for the model first, and check the class name in the model."
        )
    }
}

extension FrozenModel {
    /// The entity whose objects are of class `type`: of several, the one that is named like it, else the topmost.
    func entity(for type: NSManagedObject.Type) -> NSEntityDescription? {
        // Class names are compared as text, which takes microseconds: each class is looked for once.
        if let known = entitiesByClass.withLock({ $0[ObjectIdentifier(type)] }) { return known }
        guard let found = findEntity(for: type) else { return nil }
        entitiesByClass.withLock { $0[ObjectIdentifier(type)] = found }
        return found
    }

    private func findEntity(for type: NSManagedObject.Type) -> NSEntityDescription? {
        let matching = entities.filter { ManagedClasses.matches($0.managedObjectClassName ?? "", type) }
        if matching.count > 1, let named = matching.first(where: { $0.name == ManagedClasses.bareName(of: type) }) {
            return named
        }
        return matching.first
    }
}

/// The entities of the classes that were asked for: the names are compared once for each class.
final class EntityOfClass: Sendable {
    private struct Entry: @unchecked Sendable {
        // @unchecked Sendable: entities of frozen models are immutable.
        let entity: NSEntityDescription?
    }

    private let known = Mutex<[ObjectIdentifier: Entry]>([:])

    func entity(for type: NSManagedObject.Type, find: () -> NSEntityDescription?) -> NSEntityDescription? {
        let id = ObjectIdentifier(type)
        if let entry = known.withLock({ $0[id] }) { return entry.entity }
        let entry = Entry(entity: find())
        known.withLock { $0[id] = entry }
        return entry.entity
    }
}

extension EntityLayout {
    /// The class that the entity's objects are made of.
    var objectType: NSManagedObject.Type { objectClass.type(of: entity) }
}

extension NSEntityDescription {
    /// The layout for making an object with or without a context; stops the program for a model that is not in use.
    ///
    /// Layouts in use are immortal, so nothing is counted for an object that is made.
    @inline(__always)
    func layoutInUse(_ context: NSManagedObjectContext?) -> Unmanaged<EntityLayout> {
        if let layout = unmanagedLayout, !layout._withUnsafeGuaranteedRef({ $0.isAbstract }) { return layout }
        return Unmanaged.passUnretained(putToUse())
    }

    @inline(never)
    private func putToUse() -> EntityLayout {
        guard !isAbstract else {
            fatalError("CoreData: entity \(name ?? "") is abstract; make an object of one of its sub-entities.")
        }
        // A model of which only objects without a context are made is put to use here.
        managedObjectModel.freeze()
        return layout
    }
}
