import Foundation
import StrataPredicates
import StrataRows

/// One object of an entity: an ID, a row (a fault has none), and changes.
///
/// See <doc:Models>.
///
/// Subclass it for typed properties:
///
/// ```swift
/// let venue = Venue(context: context)
/// venue.name = "Coliseu"
/// venue.price = 40
/// print(venue.objectID.isTemporaryID, venue.changedValues().keys)
/// ```
///
/// You can also use this class itself, through ``value(forKey:)`` and ``setValue(_:forKey:)``.
///
/// An object is confined to the queue of its context: every member except ``objectID``, ``entity`` and
/// ``managedObjectContext`` may be used only inside a `perform` of that context. Debug builds stop at a violation;
/// release builds do so with `com.apple.CoreData.ConcurrencyDebug=1` in the environment.
open class NSManagedObject: NSObject {
    /// The layout; it lives as long as the process, so no references are counted.
    final let unmanagedLayout: Unmanaged<EntityLayout>
    package final var layout: EntityLayout {
        @inline(__always) get { unmanagedLayout.takeUnretainedValue() }
    }
    /// The address of the layout: objects of one entity of one model in use have the same.
    package final var layoutPlace: UnsafeRawPointer { UnsafeRawPointer(unmanagedLayout.toOpaque()) }
    /// The context that registered the object.
    ///
    /// The context clears this before it ends.
    package final var context: NSManagedObjectContext? {
        @inline(__always) get { unmanagedContext?.takeUnretainedValue() }
        set {
            let reference = newValue.map { Unmanaged.passUnretained($0) }
            // No other code has an object that has never been in a context.
            guard unmanagedContext != nil else { return unmanagedContext = reference }
            SharedIdentity.withLock(of: self) { unmanagedContext = reference }
        }
    }

    /// Becomes an object of a context, like the setter of `context`, but without counting a reference to the context.
    final func join(_ context: NSManagedObjectContext) {
        guard unmanagedContext != nil else { return unmanagedContext = .passUnretained(context) }
        self.context = context
    }

    /// The same as `context`, without counting a reference: code that reads an object is in its context's scope, and
    /// holds the context.
    private(set) final var unmanagedContext: Unmanaged<NSManagedObjectContext>?
    /// The row that reads see; `nil` while no values are known.
    ///
    /// If `flags` has `ownsRow`, then the row belongs to the object, otherwise it is shared.
    package final var current: Row? {
        @inline(__always) get { heldRow.map { Row(shared: $0.takeUnretainedValue()) } }
        @inline(__always) set {
            if flags.contains(.indexed) { outdateInIndex() }
            let former = heldRow
            heldRow = newValue.map { Unmanaged.passRetained($0.buffer) }
            former?.release()
        }
    }
    /// The row of `current`, which the object holds.
    ///
    /// Its reference is counted by the setter of `current` and in `deinit`, so that no read of a value counts it.
    private(set) final var heldRow: Unmanaged<RowBuffer>?

    /// Takes a row for `current`.
    @inline(__always)
    final func hold(_ row: Unmanaged<RowBuffer>) {
        if flags.contains(.indexed) { outdateInIndex() }
        let former = heldRow
        heldRow = row.retain()
        former?.release()
    }
    // Unchecked, since each read of a fault looks here: the reference is read or replaced as a whole, and never
    // changed in place.
    @exclusivity(unchecked) final var extras: ObjectExtras?
    /// The ID, once it has been asked for, or the store that makes it.
    private final var identity = KnownIdentity.nothing
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
    ///   - entity: An entity of a model that is in use; it must not be abstract.
    ///   - context: The context to insert into; the call must be made inside its scope.
    public required init(entity: NSEntityDescription, insertInto context: NSManagedObjectContext?) {
        // There is no `borrowing` or other modifier, although each call counts a reference to the entity. An override
        // that is declared without the modifier takes the entity over, and would release a reference that it was only
        // lent.
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

    /// Makes an object of the entity that this class represents in the context's model, and inserts it.
    ///
    /// The class is looked up in the model of the context's own coordinator, so several models may use one class. The
    /// program stops if the model has no such entity, or several.
    ///
    /// ```swift
    /// let venue = Venue(context: context)
    /// venue.name = "Coliseu"
    /// ```
    ///
    /// - Parameter context: The context; the caller must be inside its scope.
    public required convenience init(context: NSManagedObjectContext) {
        self.init(entity: context.requiredEntity(for: Self.self), insertInto: context)
    }

    /// Makes an object of the entity that this class represents, without a context, as `init(entity:insertInto:)`
    /// does with nil.
    ///
    /// Insert it with ``NSManagedObjectContext/insert(_:)``, or relate it to an object of a context. Objects without a
    /// context hold each other as long as they are related. The entity is that of ``entity()``; the program stops if
    /// no model in use has one.
    public override convenience init() {
        self.init(entity: Self.entity(), insertInto: nil)
    }

    /// The entity that this class represents in the models in use; of several models, the one that was put to use
    /// last counts.
    ///
    /// If several models share a class, then ask with a context, through
    /// ``NSEntityDescription/entity(forEntityName:in:)``.
    ///
    /// ```swift
    /// print(Venue.entity().attributesByName.keys.sorted())
    /// ```
    ///
    /// - Returns: The entity. If no model in use has an entity of this class, then the result is an entity with the
    ///   name of the class that belongs to no model; no objects can be made of it.
    open class func entity() -> NSEntityDescription {
        ManagedClasses.register(self)
        if let entity = FrozenModels.entity(for: self) { return entity }
        let entity = NSEntityDescription()
        entity.name = ManagedClasses.bareName(of: self)
        entity.managedObjectClassName = ManagedClasses.fullName(of: self)
        return entity
    }

    /// A request for the objects of this class, with any type of results.
    ///
    /// The entity is found when the request is executed, in the context's model. `Venue.fetchRequest()` is this
    /// request, unless the class itself declares such a method, as Xcode's classes do, or the caller asks for a typed
    /// request.
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

    /// The traits that the class gives to its entity.
    ///
    /// The macro `@ManagedObject` overrides this; a subclass without the macro inherits the traits of its superclass.
    open class var managedEntity: ManagedEntityInfo? { nil }

    /// Whether the object stays unchanged when a property that the model does not have is changed.
    ///
    /// The default is true.
    open class var contextShouldIgnoreUnmodeledPropertyChanges: Bool { true }

    // MARK: - Identity

    /// The entity.
    ///
    /// It may be read on any thread.
    ///
    /// ```swift
    /// print(venue.entity.name ?? "")
    /// ```
    public final var entity: NSEntityDescription { layout.entity }

    /// The context that the object is registered with; `nil` after a reset, or after the context has ended.
    ///
    /// It may be read on any thread.
    ///
    /// ```swift
    /// print(venue.managedObjectContext === context)
    /// ```
    public final var managedObjectContext: NSManagedObjectContext? {
        SharedIdentity.withLock(of: self) {
            unmanagedContext.flatMap { LiveContexts.context(at: $0.toOpaque()) }
        }
    }

    /// The object's ID: temporary until the object is first saved, and another ID from then on.
    ///
    /// It may be read on any thread that may hold the object.
    ///
    /// ```swift
    /// let id = venue.objectID  // unlike the object, the ID may be passed to another thread or context
    /// ```
    public final var objectID: NSManagedObjectID {
        if let id = idIfKnown { return id }
        // The context is held until the lock is free again. If this is its last reference, then the end of the
        // context takes the lock itself.
        let context = managedObjectContext
        return withExtendedLifetime(context) { knowID(from: context) }
    }

    /// The object's ID; it is made at the first request.
    ///
    /// - Parameter context: The object's context; `nil` if there is none, or if it is ending and has not reached this
    ///   object yet.
    /// - Returns: The ID.
    @discardableResult
    final func knowID(from context: NSManagedObjectContext?) -> NSManagedObjectID {
        SharedIdentity.withLock(of: self) {
            if let known = identity.id { return known.latest }
            let id = makeID(context)
            identity = .id(id)
            return id
        }
    }

    /// Prepares an object that other code holds for the end of its context: it can be asked for its ID all the same.
    ///
    /// - Parameter store: The store of the object.
    final func rememberStore(_ store: OpenStore) {
        SharedIdentity.withLock(of: self) { if case .nothing = identity, key > 0 { identity = .store(store) } }
    }

    private func makeID(_ context: NSManagedObjectContext?) -> NSManagedObjectID {
        if case .store(let store) = identity { return store.ids.id(key: key, layout: layout, store: store) }
        if key < 0 { return TemporaryIDs.id(key: key, layout: layout) }
        if key == 0 {
            key = TemporaryIDs.nextKey()
            return TemporaryIDs.id(key: key, layout: layout)
        }
        // The store may have been removed while its objects were in use.
        let storeIndex = storeIndex
        // A context that is ending waits for this object's lock.
        let found =
            context.map { $0.openStore(at: storeIndex) }
            ?? unmanagedContext?._withUnsafeGuaranteedRef { $0.openStore(at: storeIndex) }
        guard let store = found else { return NSManagedObjectID.leadingNowhere(layout) }
        return store.ids.id(key: key, layout: layout, store: store)
    }

    /// The ID, if it has been asked for.
    package final var idIfKnown: NSManagedObjectID? { SharedIdentity.withLock(of: self) { identity.id?.latest } }

    /// Drops the key and the ID, before the object is inserted anew.
    final func forgetID() {
        SharedIdentity.withLock(of: self) {
            key = 0
            storeIndex = -1
            identity = .nothing
        }
    }

    /// Takes over an ID that the caller already holds.
    final func setKnownID(_ id: NSManagedObjectID) {
        SharedIdentity.withLock(of: self) { identity = .id(id) }
    }

    /// Gives the object a temporary key, if it has no key.
    final func assignTemporaryKey() {
        guard key == 0 else { return }
        SharedIdentity.withLock(of: self) { if key == 0 { key = TemporaryIDs.nextKey() } }
    }

    /// Takes over the key that the object's row was saved with.
    final func setPermanentKey(_ key: Int64, storeIndex: Int32) {
        outdateInIndex()
        SharedIdentity.withLock(of: self) {
            let former = self.key
            self.key = key
            self.storeIndex = storeIndex
            // Another thread may have asked for the ID after the save made the known IDs permanent.
            guard former < 0, let known = identity.id, known.isTemporaryID else { return }
            if let store = context?.openStore(at: storeIndex), let id = TemporaryIDs.removeHeld(former) {
                store.ids.succeed(id, key: key, store: store)
            }
            identity = .id(known.latest)
        }
    }

    /// The reference by which relationships name the object.
    ///
    /// An object that takes part in relationships has a key.
    package final var reference: ObjectReference { ObjectReference(key: key, entity: layout.number) }

    /// Whether `object` is this very object: managed objects are equal only to themselves.
    public final override func isEqual(_ object: Any?) -> Bool { isSame(as: object) }

    /// A hash of the object's identity.
    public final override var hash: Int { Int(bitPattern: Unmanaged.passUnretained(self).toOpaque()) >> 4 }

    // MARK: - Hooks

    /// Called once, when the object is first inserted into a context, with the model's default values in place.
    ///
    /// Values that you set here are part of the insertion. Call `super` first.
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

    /// Called each time after a fault was realised.
    ///
    /// Values that you set here do not mark the object as changed. Call `super` first.
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
    /// - Parameter flags: The reason why the values were replaced.
    open func awake(fromSnapshotEvents flags: NSSnapshotEventType) {}

    /// Called before the object is saved or its deletion is saved; called again as long as the calls change
    /// something.
    ///
    /// Compare the values before you set a property here, because each change causes another round.
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

    /// Called before the values are dropped.
    open func willTurnIntoFault() {}

    /// Called after the values were dropped.
    ///
    /// Drop everything that you derived from them.
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
    /// - Throws: The same errors as ``validateForInsert()``.
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

    /// Checks one value against the model's rules for a property, and against the rules of the class.
    ///
    /// ```swift
    /// var name: Any? = nil
    /// do { try venue.validateValue(&name, forKey: "name") } catch { print(error.localizedDescription) }
    /// ```
    ///
    /// - Parameters:
    ///   - value: The value; a rule of the class may replace it.
    ///   - key: The name of the property. If the model has no such property, then only the rules of the class count.
    /// - Throws: A `CocoaError` of the validation codes (1550–1699) that names the object, key and value, or the
    ///   error of a rule of the class.
    public final func validateValue(_ value: inout Any?, forKey key: String) throws {
        try validateByModel(&value, forKey: key)
        if let validator = Swift.type(of: self).propertyValidators[key] {
            try apply(validator, to: &value, forKey: key)
        }
    }

    /// The validation rules of the class, by property.
    ///
    /// The default is no rules.
    ///
    /// On Apple's platforms the framework finds methods named `validate<Key>(_:)` through the Objective-C runtime,
    /// which Linux does not have. Override this property instead; every save calls the rules for each inserted and
    /// updated object.
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
    /// The program stops if the entity has no such property, unless ``value(forUndefinedKey:)`` is overridden.
    ///
    /// ```swift
    /// print(venue.value(forKey: "name") as? String ?? "")
    /// ```
    ///
    /// - Parameter key: The name of a property, or `objectID`, `entity`, `self`, `isDeleted`, `isFault`, `isInserted`,
    ///   `isUpdated`, `hasChanges` or `hasPersistentChangedValues`. For any other name ``value(forUndefinedKey:)`` is
    ///   called.
    /// - Returns: The value as an object, or `nil`; numbers have Swift's own types, relationships give objects and
    ///   sets.
    open func value(forKey key: String) -> Any? { anyValue(forKey: key) }

    /// Sets a property and updates the inverse of a relationship.
    ///
    /// A number may be any Swift number, `Bool` or `NSNumber`. A to-many relationship takes a `Set`, an `Array`, an
    /// `NSSet` or an `NSOrderedSet`. A value of another type stops the program with a message that names the property
    /// and both types.
    ///
    /// ```swift
    /// venue.setValue("Coliseu", forKey: "name")
    /// ```
    ///
    /// - Parameters:
    ///   - value: The value, of the property's type.
    ///   - key: The name of a property, whose first letter may be a capital, as in key-value coding; for any other
    ///     name ``setValue(_:forUndefinedKey:)`` is called.
    open func setValue(_ value: Any?, forKey key: String) { setAnyValue(value, forKey: key) }

    /// Called for a key that the entity lacks.
    ///
    /// The program stops, unless an override returns a value.
    ///
    /// - Parameter key: The requested name.
    /// - Returns: The value that an override has for the key; without an override the program stops.
    open func value(forUndefinedKey key: String) -> Any? {
        if let question = UndefinedKeyQuestion.current { return question.answer() }
        fatalError(
            "CoreData: entity \(entity.name ?? "") has no property \"\(key)\" (read through value(forKey:) on \(Swift.type(of: self)))"
        )
    }

    /// Called for a key that the entity lacks.
    ///
    /// The program stops, unless an override takes the value.
    ///
    /// - Parameters:
    ///   - value: The value that was to be set.
    ///   - key: The requested name.
    open func setValue(_ value: Any?, forUndefinedKey key: String) {
        fatalError(
            "CoreData: entity \(entity.name ?? "") has no property \"\(key)\" (set through setValue(_:forKey:) on \(Swift.type(of: self)))"
        )
    }

    /// The entity, the ID, the kind of the unsaved change, and the loaded values by name.
    ///
    /// It loads nothing: a relationship shows the IDs of its members, or that it is a fault. The text is for people,
    /// and its form may change.
    open override var description: String {
        let state = flags.contains(.deleted) ? "; deleted" : isInserted ? "; inserted" : isUpdated ? "; updated" : ""
        let values = isFault ? "<fault>" : "{\(describedValues)}"
        return "<\(Swift.type(of: self)): \(entity.name ?? "")> (id: \(objectID)\(state); data: \(values))"
    }
}

/// The ID of an object as far as it is known, or the place that makes it.
private enum KnownIdentity {
    case nothing
    case id(NSManagedObjectID)
    /// The store, which makes the ID when it is asked for, as the context of the object has ended.
    case store(OpenStore)

    var id: NSManagedObjectID? {
        guard case .id(let id) = self else { return nil }
        return id
    }
}

extension NSManagedObject: NSFetchRequestResult {}

extension NSFetchRequestResult where Self: NSManagedObject {
    /// A typed request for the objects of this class, if the caller asks for one.
    ///
    /// Example: `let request: NSFetchRequest<Venue> = Venue.fetchRequest()`.
    ///
    /// The entity is found when the request is executed, in the context's model.
    ///
    /// - Returns: A request for all objects of the class, subclasses included.
    @_disfavoredOverload
    public static func fetchRequest() -> NSFetchRequest<Self> {
        NSFetchRequest<Self>(managedClass: self)
    }
}

/// Objects may be passed between threads by reference, but not used on other threads: only
/// ``NSManagedObject/objectID`` is safe.
@available(*, unavailable, message: "Pass the objectID to the other context instead")
extension NSManagedObject: Sendable {}

/// The reasons why an object's values were replaced, for ``NSManagedObject/awake(fromSnapshotEvents:)``.
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

    /// Makes a set of events from its bits.
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
