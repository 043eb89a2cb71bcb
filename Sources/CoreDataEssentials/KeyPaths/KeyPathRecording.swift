import StrataPredicates
import StrataRows

/// Finds the properties that a Swift key path reads, by applying it to objects that record reads.
///
/// The objects have the classes that the key path leads through, and an entity without any property. Every typed access
/// looks up its property once for each entity. For this entity it finds nothing, and calls the recording instead of
/// stopping the program. So real objects have no cost from recording.
///
/// A recording lives for one application of a key path, on one thread.
package final class KeyPathRecording: @unchecked Sendable {
    // @unchecked Sendable: it is bound as a task-local value during a synchronous call, and used only inside that call.

    /// The recording of the key path that is being applied on this thread.
    @TaskLocal package static var current: KeyPathRecording?

    /// One property that was read.
    struct Step {
        let owner: NSManagedObject
        let name: String
        /// The declared type; `nil` for a read through `value(forKey:)`.
        let declaredType: Any.Type?
        /// The value that the read returned.
        let value: Any?
    }

    /// The values of scalar properties.
    private let samples: Samples
    private(set) var steps: [Step] = []
    /// Whether the key path declares that it has no name.
    private(set) var isRefused = false
    /// The property whose typed access is about to read a value.
    private var announced: (name: String, type: Any.Type)?

    init(_ samples: Samples) {
        self.samples = samples
    }

    /// Applies a key path to a recording object.
    func apply(_ keyPath: AnyKeyPath, to type: NSManagedObject.Type) -> (root: NSManagedObject, value: Any?) {
        Self.$current.withValue(self) {
            let root = makeObject(type)
            return (root, flattenOptional(root[keyPath: keyPath]))
        }
    }

    /// Notes that the key path has no name, whatever it reads.
    package func refuse() {
        isRefused = true
    }

    // MARK: - Recording objects

    /// The entity of the recording objects.
    ///
    /// No class has its class name.
    private static let entity: NSEntityDescription = {
        let entity = NSEntityDescription()
        entity.name = "KeyPathRecording"
        entity.managedObjectClassName = "key path recording"
        let model = NSManagedObjectModel()
        model.entities = [entity]
        model.freeze()
        return entity
    }()

    static func isRecorder(_ layout: EntityLayout) -> Bool { layout === entity.layout }

    private func makeObject(_ type: NSManagedObject.Type) -> NSManagedObject {
        type.init(entity: Self.entity, insertInto: nil)
    }

    // MARK: - Reads

    /// Notes that a typed access of `name` has begun; returns false if the object is no recording object.
    func announce(_ name: String, _ type: Any.Type, in layout: EntityLayout) -> Bool {
        guard Self.isRecorder(layout) else { return false }
        announced = (name, type)
        return true
    }

    /// The value of a property of a recording object.
    func read(_ name: String, of owner: NSManagedObject) -> Any? {
        var type = announced?.name == name ? announced?.type : nil
        announced = nil
        let isTyped = type != nil
        if !isTyped { type = modelledType(name, of: Swift.type(of: owner)) }
        let value = type.flatMap { sample(of: $0, isTyped: isTyped) }
        steps.append(Step(owner: owner, name: name, declaredType: isTyped ? type : nil, value: value))
        return value
    }

    private func sample(of type: Any.Type, isTyped: Bool) -> Any? {
        let plain = unwrapped(type)
        if let managed = plain as? NSManagedObject.Type { return makeObject(managed) }
        if samples == .none, isTyped, plain != type { return nil }
        if let representable = plain as? any RawRepresentable.Type { return samples.rawValue(of: representable) }
        return samples.value(of: plain)
    }

    /// The type of a property that a class reads by name, from the models in use.
    private func modelledType(_ name: String, of type: NSManagedObject.Type) -> Any.Type? {
        let models = immortalModels.withLock { $0 }
        guard let layout = models.reversed().lazy.compactMap({ $0.frozen.entity(for: type)?.layout }).first else {
            return nil
        }
        guard case .slot(let index)? = layout.places[name] else { return nil }
        let slot = layout.slots[index]
        if let destination = slot.relationship?.destination {
            return destination.objectClass.type(of: destination.entity)
        }
        return NSAttributeType(slot.type).swiftType
    }

    /// A value of an enumeration, for a property that cannot be nil.
    ///
    /// Only the key path's next step uses it.
    static func placeholder<Value: RawRepresentable>(_ type: Value.Type) -> Value? {
        current == nil ? nil : anyCase(Value.self)
    }

    /// Some case of an enumeration: the first one if it lists them.
    static func anyCase<Value: RawRepresentable>(_ type: Value.Type) -> Value? {
        if let iterable = type as? any CaseIterable.Type { return firstCase(iterable) as? Value }
        guard _isPOD(type) else { return nil }
        // The bits of an enumeration without associated values are the number of its case, and case 0 exists.
        return withUnsafeTemporaryAllocation(of: Value.self, capacity: 1) { buffer in
            guard let base = buffer.baseAddress else { return nil }
            UnsafeMutableRawPointer(base).initializeMemory(
                as: UInt8.self,
                repeating: 0,
                count: MemoryLayout<Value>.size
            )
            return base.move()
        }
    }

    private static func firstCase<Value: CaseIterable>(_ type: Value.Type) -> Any? {
        Value.allCases.first
    }
}
