import CoreDataEssentials
import StrataPredicates

/// The migration of the objects of one entity mapping.
///
/// Subclass it to do work that expressions cannot do, and name the class in
/// ``NSEntityMapping/entityMigrationPolicyClassName``. There is one instance for each mapping. It lives through the
/// whole migration, so it may keep state. The manager calls:
///
/// 1. In the first pass ``begin(_:with:)``, then ``createDestinationInstances(forSource:in:manager:)`` for each source
///    object, and ``endInstanceCreation(forMapping:manager:)``.
/// 2. In the second pass ``createRelationships(forDestination:in:manager:)`` for each destination object that was associated
///    through the mapping, and ``endRelationshipCreation(forMapping:manager:)``.
/// 3. In the third pass ``performCustomValidation(forMapping:manager:)`` and ``end(_:manager:)``.
///
/// Each pass is done for all mappings, in their order, before the next begins. Objects are written and turned into faults
/// every thousand or so, so that memory does not grow with the number of rows: objects that a policy holds stay valid.
///
/// All methods are called on the thread that migrates, inside the scopes of both contexts of the manager. If a method
/// throws an error, then the migration ends, and its caller gets the same error.
///
/// See <doc:Migration>.
///
/// ```swift
/// final class UpperCase: NSEntityMigrationPolicy {
///     override func createDestinationInstances(
///         forSource source: NSManagedObject, in mapping: NSEntityMapping, manager: NSMigrationManager
///     ) throws {
///         try super.createDestinationInstances(forSource: source, in: mapping, manager: manager)
///         for made in manager.destinationInstances(forEntityMappingName: mapping.name, sourceInstances: [source]) {
///             made.setValue((source.value(forKey: "name") as? String)?.uppercased(), forKey: "name")
///         }
///     }
/// }
/// NSEntityMigrationPolicy.register(UpperCase.self, as: "UpperCase")
/// ```
open class NSEntityMigrationPolicy: NSObject, ExpressionFunctionTarget {
    /// Makes a policy; the manager makes one for each mapping.
    public required override init() { super.init() }

    /// Called before anything is done for a mapping.
    ///
    /// Does nothing.
    ///
    /// - Parameters:
    ///   - mapping: The current mapping.
    ///   - manager: The manager that runs the migration.
    /// - Throws: An error that ends the migration.
    open func begin(_ mapping: NSEntityMapping, with manager: NSMigrationManager) throws {}

    /// Makes the destination objects of a source object.
    ///
    /// It inserts an object of the mapping's destination entity into ``NSMigrationManager/destinationContext``, gives
    /// its attributes the values of the mapping's expressions, and associates it with the source object. Without a
    /// destination entity it makes nothing. If an override does not call this method, then it must associate the
    /// objects that it makes (``NSMigrationManager/associate(sourceInstance:withDestinationInstance:for:)``); otherwise
    /// the second pass skips them.
    ///
    /// - Parameters:
    ///   - sInstance: The source object, in ``NSMigrationManager/sourceContext``.
    ///   - mapping: The current mapping.
    ///   - manager: The manager that runs the migration.
    /// - Throws: `entityMigrationPolicy` (134170) if a function cannot be called, `migration` (134110) for a value that the
    ///   attribute does not take.
    open func createDestinationInstances(
        forSource sInstance: NSManagedObject,
        in mapping: NSEntityMapping,
        manager: NSMigrationManager
    ) throws {
        guard let step = try manager.running(mapping) else { return }
        try step.createDestination(for: sInstance)
    }

    /// Called after all source objects of the mapping, before the first pass continues with the next mapping.
    ///
    /// Does nothing.
    ///
    /// - Parameters:
    ///   - mapping: The mapping whose source objects are done.
    ///   - manager: The manager that runs the migration.
    /// - Throws: An error that ends the migration.
    open func endInstanceCreation(forMapping mapping: NSEntityMapping, manager: NSMigrationManager) throws {}

    /// Gives a destination object its relationships.
    ///
    /// Evaluates the mapping's relationship mappings. A value of nil leaves the relationship as it is. If the value for
    /// a to-one relationship is a collection, then its first object is used.
    ///
    /// - Parameters:
    ///   - dInstance: The destination object, in ``NSMigrationManager/destinationContext``.
    ///   - mapping: The mapping by which the object was made.
    ///   - manager: The manager that runs the migration.
    /// - Throws: `entityMigrationPolicy` (134170) if a function cannot be called, `migration` (134110) for a value that the
    ///   relationship does not take.
    open func createRelationships(
        forDestination dInstance: NSManagedObject,
        in mapping: NSEntityMapping,
        manager: NSMigrationManager
    ) throws {
        guard let step = try manager.running(mapping) else { return }
        try step.createRelationships(of: dInstance)
    }

    /// Called after all destination objects of the mapping have their relationships.
    ///
    /// Does nothing.
    ///
    /// - Parameters:
    ///   - mapping: The mapping whose destination objects are done.
    ///   - manager: The manager that runs the migration.
    /// - Throws: An error that ends the migration.
    open func endRelationshipCreation(forMapping mapping: NSEntityMapping, manager: NSMigrationManager) throws {}

    /// Called in the third pass, for checks that validation does not make.
    ///
    /// Does nothing. All destination objects are validated afterwards.
    ///
    /// - Parameters:
    ///   - mapping: The current mapping.
    ///   - manager: The manager that runs the migration.
    /// - Throws: An error that ends the migration.
    open func performCustomValidation(forMapping mapping: NSEntityMapping, manager: NSMigrationManager) throws {}

    /// Called last for a mapping; objects may still be made and changed.
    ///
    /// Does nothing.
    ///
    /// - Parameters:
    ///   - mapping: The mapping that is done.
    ///   - manager: The manager that runs the migration.
    /// - Throws: An error that ends the migration.
    open func end(_ mapping: NSEntityMapping, manager: NSMigrationManager) throws {}

    // MARK: - Functions by name

    /// A function that a value expression can call, with the values of its arguments.
    ///
    /// ```swift
    /// let titleCased: NSEntityMigrationPolicy.Function = { arguments in (arguments.first as? String)?.capitalized }
    /// ```
    public typealias Function = ([Any?]) throws -> Any?

    /// The function that `FUNCTION($entityPolicy, "name", …)` calls.
    ///
    /// On Linux there is no Objective-C runtime to find methods by name. So a policy lists the functions that its
    /// mapping model uses, under the same names:
    ///
    /// ```swift
    /// final class Titles: NSEntityMigrationPolicy {
    ///     override func function(named name: String) -> Function? {
    ///         switch name {
    ///         case "titleCased:": { arguments in (arguments[0] as? String)?.capitalized }
    ///         default: super.function(named: name)
    ///         }
    ///     }
    /// }
    /// ```
    ///
    /// All names are looked up before the first object is migrated, so a missing name is an error at that time. An
    /// addition to Apple's API.
    ///
    /// - Parameter name: The selector, with its colons.
    /// - Returns: The function; `nil`, the default, for an unknown name.
    open func function(named name: String) -> Function? { nil }

    // MARK: - Classes by name

    /// Registers a policy under a name that mapping models use.
    ///
    /// It is needed only if the class has another name in the mapping model, or if several modules have a class of that
    /// name. Other classes are found by their names, whatever module the mapping model names. An addition to Apple's
    /// API. Any thread may call it.
    ///
    /// - Parameters:
    ///   - type: The class.
    ///   - name: The name in the mapping model; the class can always be found by its bare name too.
    public static func register(_ type: NSEntityMigrationPolicy.Type, as name: String? = nil) {
        PolicyClasses.register(type, as: name)
    }
}
