import Foundation
import StrataPredicates
import StrataRows

/// One object of an entity: an ID, a row (or none: a fault), and changes.
///
/// Subclass it for typed properties:
///
/// See <doc:Models>.
///
/// ```swift
/// let venue = Venue(context: context)
/// venue.name = "Coliseu"
/// venue.price = 40
/// print(venue.objectID.isTemporaryID, venue.changedValues().keys)
/// ```
///
/// or use it as it is, through ``value(forKey:)`` and ``setValue(_:forKey:)``.
///
/// Confined to the queue of its context: every member but ``objectID``, ``entity`` and ``managedObjectContext`` may be
/// used only inside a `perform` of that context. Debug builds stop at a violation; release builds do with
/// `com.apple.CoreData.ConcurrencyDebug=1` in the environment.
open class NSManagedObject: NSObject {
    /// Alive for the life of the process, so nobody has to count it.
    final let unmanagedLayout: Unmanaged<EntityLayout>
    final var layout: EntityLayout {
        @inline(__always) get { unmanagedLayout.takeUnretainedValue() }
    }
    /// The context that registered the object.
    ///
    /// The context clears this before it goes away.
    final var context: NSManagedObjectContext? {
        @inline(__always) get { unmanagedContext?.takeUnretainedValue() }
        set {
            let reference = newValue.map { Unmanaged.passUnretained($0) }
            // Nobody else has an object that was in no context yet.
            guard unmanagedContext != nil else { return unmanagedContext = reference }
            SharedIdentity.withLock(of: self) { unmanagedContext = reference }
        }
    }

    /// Becomes an object of a context, as by the setter of `context`, but without counting the context.
    final func join(_ context: NSManagedObjectContext) {
        guard unmanagedContext != nil else { return unmanagedContext = .passUnretained(context) }
        self.context = context
    }

    /// As `context`, for code that shall not count it: whoever reads an object is in its context's scope, and holds it.
    private(set) final var unmanagedContext: Unmanaged<NSManagedObjectContext>?
    /// What reads see; the object's own if `flags` has `ownsRow`, else shared; `nil` while nothing is known.
    final var current: Row? {
        @inline(__always) get { heldRow.map { Row(shared: $0.takeUnretainedValue()) } }
        @inline(__always) set {
            let former = heldRow
            heldRow = newValue.map { Unmanaged.passRetained($0.buffer) }
            former?.release()
        }
    }
    /// The row of `current`, which the object holds: counted there and in `deinit`, so that no read of a value counts it.
    private(set) final var heldRow: Unmanaged<RowBuffer>?

    /// Takes a row for `current`.
    @inline(__always)
    final func hold(_ row: Unmanaged<RowBuffer>) {
        let former = heldRow
        heldRow = row.retain()
        former?.release()
    }
    // Unchecked, as each read of a fault looks here: a reference that is read or replaced as a whole, never changed in place.
    @exclusivity(unchecked) final var extras: ObjectExtras?
    /// The ID, once somebody has asked for it.
    private final var knownID: NSManagedObjectID?
    /// The primary key, or the negative number of an unsaved object.
    final var key: Int64
    /// The position of the object's store in its coordinator; -1 while it has none.
    final var storeIndex: Int32
    final var flags: ObjectFlags

    // MARK: - Making

    /// Makes an object of `entity`, and inserts it into `context` if there is one.
    ///
    /// ```swift
    /// let venue = NSManagedObject(entity: entity, insertInto: context)
    /// venue.setValue("Coliseu", forKey: "name")
    /// ```
    ///
    /// - Parameters:
    ///   - entity: An entity of a model that is in use, and not abstract.
    ///   - context: The context to insert into; the call must be made inside its scope.
    public required init(entity: NSEntityDescription, insertInto context: NSManagedObjectContext?) {
        // Neither `borrowing` nor any other modifier, though each object made counts the entity: an override that is
        // declared without it takes the entity over, and would release what it was only lent.
        unmanagedLayout = entity.layoutInUse(context)
        unmanagedContext = nil
        heldRow = nil
        key = 0
        storeIndex = -1
        flags = .detached
        super.init()
        context?.insert(self)
    }

    deinit {
        heldRow?.release()
    }

    /// Makes an object of the entity that this class stands for in the context's model, and inserts it.
    ///
    /// The class is looked up in the model of the context's own coordinator, so several models may use one class.
    /// Stops the program if the model has no such entity, or several.
    ///
    /// ```swift
    /// let venue = Venue(context: context)
    /// venue.name = "Coliseu"
    /// ```
    ///
    /// - Parameter context: The context, inside whose scope the caller is.
    public required convenience init(context: NSManagedObjectContext) {
        self.init(entity: context.requiredEntity(for: Self.self), insertInto: context)
    }

    /// Makes an object of the entity that this class stands for, without a context, as `init(entity:insertInto:)` does with nil.
    ///
    /// Insert it with ``NSManagedObjectContext/insert(_:)``. The entity is that of ``entity()``: stops the program if no model in use has
    /// one.
    public override convenience init() {
        self.init(entity: Self.entity(), insertInto: nil)
    }

    /// The entity that this class stands for, in the models in use; of several, that of the model put to use last.
    ///
    /// Where several models share a class, ask with a context, through ``NSEntityDescription/entity(forEntityName:in:)``.
    ///
    /// ```swift
    /// print(Venue.entity().attributesByName.keys.sorted())
    /// ```
    ///
    /// - Returns: If no model in use has an entity of this class, an entity of no model with the name of the class, of which no
    ///   objects can be made.
    open class func entity() -> NSEntityDescription {
        ManagedClasses.register(self)
        if let entity = FrozenModels.entity(for: self) { return entity }
        let entity = NSEntityDescription()
        entity.name = ManagedClasses.bareName(of: self)
        entity.managedObjectClassName = String(reflecting: self)
        return entity
    }

    /// A request for the objects of this class, in any form.
    ///
    /// The entity is found when the request is executed, in the context's model. `Venue.fetchRequest()` is this request
    /// unless the class itself declares such a method, as Xcode's do, or a typed request is asked for.
    ///
    /// ```swift
    /// let request: NSFetchRequest<any NSFetchRequestResult> = Venue.fetchRequest()
    /// ```
    ///
    /// - Returns: A new request, without predicate and order.
    @_disfavoredOverload
    open class func fetchRequest() -> NSFetchRequest<any NSFetchRequestResult> {
        NSFetchRequest<any NSFetchRequestResult>(managedClass: self)
    }

    /// The properties declared with `@Managed`, by which key paths find their names.
    ///
    /// The macro `@ManagedObject` overrides this.
    open class var managedProperties: [ManagedPropertyInfo] { [] }

    /// What the class says of its entity.
    ///
    /// The macro `@ManagedObject` overrides this; a subclass without it inherits what its superclass says of itself.
    open class var managedEntity: ManagedEntityInfo? { nil }

    /// Whether a change of a property that the model does not know leaves the object unchanged.
    ///
    /// True unless overridden.
    open class var contextShouldIgnoreUnmodeledPropertyChanges: Bool { true }

    // MARK: - Identity

    /// The entity.
    ///
    /// May be read on any thread.
    ///
    /// ```swift
    /// print(venue.entity.name ?? "")
    /// ```
    public final var entity: NSEntityDescription { layout.entity }

    /// The context that the object is registered with; `nil` after a reset, or when the context is gone.
    ///
    /// May be read on any thread.
    ///
    /// ```swift
    /// print(venue.managedObjectContext === context)
    /// ```
    public final var managedObjectContext: NSManagedObjectContext? {
        SharedIdentity.withLock(of: self) {
            unmanagedContext.flatMap { LiveContexts.context(at: $0.toOpaque()) }
        }
    }

    /// The object's ID: temporary until the object is first saved, and another one from then on.
    ///
    /// May be read on any thread that may hold the object.
    ///
    /// ```swift
    /// let id = venue.objectID  // may go to another thread or context, as the object may not
    /// ```
    public final var objectID: NSManagedObjectID {
        if let id = idIfKnown { return id }
        // Held until the lock is free again: its end, if this is the last reference, takes the lock itself.
        let context = managedObjectContext
        return withExtendedLifetime(context) { knowID(from: context) }
    }

    /// The object's ID, made if nobody has asked for it before.
    ///
    /// - Parameter context: The object's context; `nil` if there is none, or if it goes away and has not come to this object yet.
    /// - Returns: The ID.
    @discardableResult
    final func knowID(from context: NSManagedObjectContext?) -> NSManagedObjectID {
        SharedIdentity.withLock(of: self) {
            if let knownID { return knownID.latest }
            let id = makeID(context)
            knownID = id
            return id
        }
    }

    private func makeID(_ context: NSManagedObjectContext?) -> NSManagedObjectID {
        if key < 0 { return TemporaryIDs.id(key: key, layout: layout) }
        if key == 0 {
            key = TemporaryIDs.nextKey()
            return TemporaryIDs.id(key: key, layout: layout)
        }
        // The store may have been removed while its objects were in use.
        let storeIndex = storeIndex
        // A context that goes away waits for this object's lock.
        let found =
            context.map { $0.openStore(at: storeIndex) }
            ?? unmanagedContext?._withUnsafeGuaranteedRef { $0.openStore(at: storeIndex) }
        guard let store = found else { return NSManagedObjectID.leadingNowhere(layout) }
        return store.ids.id(key: key, layout: layout, store: store)
    }

    /// The ID, if somebody has asked for it.
    final var idIfKnown: NSManagedObjectID? { SharedIdentity.withLock(of: self) { knownID?.latest } }

    /// Drops key and ID, before the object is inserted anew.
    final func forgetID() {
        SharedIdentity.withLock(of: self) {
            key = 0
            storeIndex = -1
            knownID = nil
        }
    }

    /// Takes over an ID that the caller already holds.
    final func adopt(_ id: NSManagedObjectID) {
        SharedIdentity.withLock(of: self) { knownID = id }
    }

    /// Gives the object a temporary key, if it has no key.
    final func takeKey() {
        guard key == 0 else { return }
        SharedIdentity.withLock(of: self) { if key == 0 { key = TemporaryIDs.nextKey() } }
    }

    /// Takes over the key under which the object's row was saved.
    final func takeKey(_ key: Int64, storeIndex: Int32) {
        SharedIdentity.withLock(of: self) {
            let former = self.key
            self.key = key
            self.storeIndex = storeIndex
            // Another thread may have asked for the ID since the save made those permanent that were known.
            guard former < 0, let known = knownID, known.isTemporaryID else { return }
            if let store = context?.openStore(at: storeIndex), let id = TemporaryIDs.take(former) {
                store.ids.succeed(id, key: key, store: store)
            }
            knownID = known.latest
        }
    }

    /// How relationships name the object.
    ///
    /// It has a key: only objects of a context take part in relationships.
    final var reference: ObjectReference { ObjectReference(key: key, entity: layout.number) }

    /// Whether `object` is this very object: managed objects are equal only to themselves.
    public final override func isEqual(_ object: Any?) -> Bool {
        (object as AnyObject?) === self
    }

    /// A hash of the object's identity.
    public final override var hash: Int { Int(bitPattern: Unmanaged.passUnretained(self).toOpaque()) >> 4 }

    // MARK: - Hooks

    /// Called once, when the object is first inserted into a context, with the model's default values in place.
    ///
    /// What you set here belongs to the insertion. Call `super` first.
    ///
    /// ```swift
    /// final class Note: NSManagedObject {
    ///     override func awakeFromInsert() {
    ///         super.awakeFromInsert()
    ///         setPrimitiveValue(Date(), forKey: "createdAt")
    ///     }
    /// }
    /// ```
    open func awakeFromInsert() {}

    /// Called each time a fault was realised.
    ///
    /// What you set here does not mark the object changed. Call `super` first.
    ///
    /// ```swift
    /// final class Place: NSManagedObject {
    ///     private(set) var label = ""
    ///     override func awakeFromFetch() {
    ///         super.awakeFromFetch()
    ///         label = (value(forKey: "name") as? String ?? "").uppercased()
    ///     }
    /// }
    /// ```
    open func awakeFromFetch() {}

    /// Called after values were replaced by undo, redo, rollback, refresh or a merge.
    ///
    /// Call `super` first.
    ///
    /// - Parameter flags: Why the values were replaced.
    open func awake(fromSnapshotEvents flags: NSSnapshotEventType) {}

    /// Called when the object is about to be saved, deleted objects included; again as long as calls change something.
    ///
    /// Compare before you set a property here: each change causes another round.
    ///
    /// ```swift
    /// final class Memo: NSManagedObject {
    ///     override func willSave() {
    ///         super.willSave()
    ///         if !isDeleted { setPrimitiveValue(Date(), forKey: "savedAt") }
    ///     }
    /// }
    /// ```
    open func willSave() {}

    /// Called once after a save that wrote the object.
    ///
    /// ```swift
    /// final class Picture: NSManagedObject {
    ///     override func didSave() {
    ///         super.didSave()
    ///         print("\(objectID) is written")
    ///     }
    /// }
    /// ```
    open func didSave() {}

    /// Called when the object is deleted, while its relationships are still set.
    ///
    /// ```swift
    /// final class Album: NSManagedObject {
    ///     override func prepareForDeletion() {
    ///         super.prepareForDeletion()
    ///         for song in value(forKey: "songs") as? Set<NSManagedObject> ?? [] { song.setValue(nil, forKey: "album") }
    ///     }
    /// }
    /// ```
    open func prepareForDeletion() {}

    /// Called before the values are let go of.
    open func willTurnIntoFault() {}

    /// Called after the values were let go of.
    ///
    /// Drop what you derived from them.
    open func didTurnIntoFault() {}

    /// Validates the object before its first save.
    ///
    /// Call `super`.
    ///
    /// ```swift
    /// final class Booking: NSManagedObject {
    ///     override func validateForInsert() throws {
    ///         try super.validateForInsert()
    ///         guard value(forKey: "seats") as? Int ?? 0 > 0 else { throw CocoaError(.validationNumberTooSmall) }
    ///     }
    /// }
    /// ```
    ///
    /// - Throws: One `CocoaError` of the validation codes, or several in `validationMultipleErrors` (1560).
    open func validateForInsert() throws { try validateProperties() }

    /// Validates a changed object before a save.
    ///
    /// Call `super`.
    ///
    /// ```swift
    /// final class Ticket: NSManagedObject {
    ///     override func validateForUpdate() throws {
    ///         try super.validateForUpdate()
    ///         if changedValues()["number"] != nil { throw CocoaError(.managedObjectValidation) }
    ///     }
    /// }
    /// ```
    ///
    /// - Throws: As ``validateForInsert()``.
    open func validateForUpdate() throws { try validateProperties() }

    /// Validates the delete rules before a save that deletes the object.
    ///
    /// Call `super`.
    ///
    /// ```swift
    /// final class Invoice: NSManagedObject {
    ///     override func validateForDelete() throws {
    ///         try super.validateForDelete()
    ///         if value(forKey: "isPaid") as? Bool == true { throw CocoaError(.managedObjectValidation) }
    ///     }
    /// }
    /// ```
    ///
    /// - Throws: `validationRelationshipDeniedDelete` (1600) for a relationship with the deny rule that is not empty.
    open func validateForDelete() throws { try validateDeleteRules() }

    /// Checks one value against the model's rules for a property and the class's own.
    ///
    /// ```swift
    /// var name: Any? = nil
    /// do { try venue.validateValue(&name, forKey: "name") } catch { print(error.localizedDescription) }
    /// ```
    ///
    /// - Parameters:
    ///   - value: The value; a rule of the class may replace it.
    ///   - key: The name of the property. For a name that the model lacks only the class's own rules count.
    /// - Throws: A `CocoaError` of the validation codes (1550–1699) that names the object, key and value, or what a
    ///   rule of the class throws.
    public final func validateValue(_ value: inout Any?, forKey key: String) throws {
        try validateByModel(&value, forKey: key)
        if let validator = Swift.type(of: self).propertyValidators[key] { try apply(validator, &value, key) }
    }

    /// Rules of the class's own, by property.
    ///
    /// Default: none.
    ///
    /// On Apple's platforms the framework finds methods named `validate<Key>(_:)` through the Objective-C runtime, which Linux
    /// lacks. Override this instead; every save calls the rules for each inserted and updated object.
    ///
    /// ```swift
    /// final class Member: NSManagedObject {
    ///     override class var propertyValidators: [String: PropertyValidator] {
    ///         ["email": { _, value in if (value as? String)?.contains("@") != true { throw CocoaError(.validationStringPatternMatching) } }]
    ///     }
    /// }
    /// ```
    open class var propertyValidators: [String: PropertyValidator] { [:] }

    /// The value of a property.
    ///
    /// See ``setValue(_:forKey:)`` for the types.
    ///
    /// Stops the program if the entity has no such property, unless ``value(forUndefinedKey:)`` is overridden.
    ///
    /// ```swift
    /// print(venue.value(forKey: "name") as? String ?? "")
    /// ```
    ///
    /// - Parameter key: The name of a property; any other asks ``value(forUndefinedKey:)``.
    /// - Returns: The value as an object, or `nil`; numbers as Swift's own types, relationships as objects and sets.
    open func value(forKey key: String) -> Any? { anyValue(forKey: key) }

    /// Sets a property and keeps its inverse relationship in step.
    ///
    /// Numbers may be any Swift number, `Bool` or `NSNumber`; a to-many takes a `Set`, an `Array`, an `NSSet` or an
    /// `NSOrderedSet`. Stops the program for a value of another type, naming the property and both types.
    ///
    /// ```swift
    /// venue.setValue("Coliseu", forKey: "name")
    /// ```
    ///
    /// - Parameters:
    ///   - value: The value, of the property's type.
    ///   - key: The name of a property, whose first letter may be a capital, as in key-value coding; any other asks
    ///     ``setValue(_:forUndefinedKey:)``.
    open func setValue(_ value: Any?, forKey key: String) { setAnyValue(value, forKey: key) }

    /// Called for a key that the entity lacks.
    ///
    /// Stops the program; an override may answer instead.
    ///
    /// - Parameter key: The name that was asked for.
    /// - Returns: What an override has for the key; without one the program stops.
    open func value(forUndefinedKey key: String) -> Any? {
        if let question = UndefinedKeyQuestion.current { return question.answer() }
        fatalError(
            "CoreData: entity \(entity.name ?? "") has no property \"\(key)\" (read through value(forKey:) on \(Swift.type(of: self)))"
        )
    }

    /// Called for a key that the entity lacks.
    ///
    /// Stops the program; an override may take the value instead.
    ///
    /// - Parameters:
    ///   - value: The value that was to be set.
    ///   - key: The name that was asked for.
    open func setValue(_ value: Any?, forUndefinedKey key: String) {
        fatalError(
            "CoreData: entity \(entity.name ?? "") has no property \"\(key)\" (set through setValue(_:forKey:) on \(Swift.type(of: self)))"
        )
    }

    /// The entity, the ID, what the next save does about the object, and the values that are loaded, by name.
    ///
    /// Loads nothing: relationships show the IDs of their members, or that they are faults. For people; the form may change.
    open override var description: String {
        let state = flags.contains(.deleted) ? "; deleted" : isInserted ? "; inserted" : isUpdated ? "; updated" : ""
        let values = isFault ? "<fault>" : "{\(describedValues)}"
        return "<\(Swift.type(of: self)): \(entity.name ?? "")> (id: \(objectID)\(state); data: \(values))"
    }
}

extension NSManagedObject: NSFetchRequestResult {}

extension NSFetchRequestResult where Self: NSManagedObject {
    /// A typed request for the objects of this class, where one is asked for: `let request: NSFetchRequest<Venue> = Venue.fetchRequest()`.
    ///
    /// The entity is found when the request is executed, in the context's model.
    ///
    /// - Returns: A request for all objects of the class, subclasses included.
    @_disfavoredOverload
    public static func fetchRequest() -> NSFetchRequest<Self> {
        NSFetchRequest<Self>(managedClass: self)
    }
}

/// Objects are passed between threads by reference, never used there: only ``NSManagedObject/objectID`` is safe.
@available(*, unavailable, message: "Pass the objectID to the other context instead")
extension NSManagedObject: Sendable {}

/// Why an object's values were replaced, for ``NSManagedObject/awake(fromSnapshotEvents:)``.
///
/// ```swift
/// final class Watched: NSManagedObject {
///     override func awake(fromSnapshotEvents flags: NSSnapshotEventType) {
///         super.awake(fromSnapshotEvents: flags)
///         if flags.contains(.refresh) { print("refreshed") }
///     }
/// }
/// ```
public struct NSSnapshotEventType: OptionSet, Sendable {
    /// The bits.
    public let rawValue: UInt

    /// A set of events by its bits.
    ///
    /// - Parameter rawValue: The bits.
    public init(rawValue: UInt) { self.rawValue = rawValue }

    /// An insertion was undone.
    public static let undoInsertion = NSSnapshotEventType(rawValue: 1 << 1)
    /// A deletion was undone.
    public static let undoDeletion = NSSnapshotEventType(rawValue: 1 << 2)
    /// A change was undone.
    public static let undoUpdate = NSSnapshotEventType(rawValue: 1 << 3)
    /// The context was rolled back.
    public static let rollback = NSSnapshotEventType(rawValue: 1 << 4)
    /// The object was refreshed.
    public static let refresh = NSSnapshotEventType(rawValue: 1 << 5)
    /// A merge policy resolved a conflict.
    public static let mergePolicy = NSSnapshotEventType(rawValue: 1 << 6)
}
