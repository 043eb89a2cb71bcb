import CoreDataEssentials
import StrataPredicates

extension NSManagedObjectModel {
    /// Makes a model from classes that describe their entities.
    ///
    /// ```swift
    /// let model = try NSManagedObjectModel(for: Venue.self, City.self)
    /// let container = NSPersistentContainer(name: "Guide", managedObjectModel: model)
    /// ```
    ///
    /// Each class is an entity with its `@Managed` properties. The type determines the kind of attribute or
    /// relationship and whether it is optional; ``ManagedTrait`` adds other facts. A superclass that is marked with
    /// `@ManagedObject` becomes the super-entity and need not be listed. The hashes and tables are the same as for an
    /// equal model in a file. An addition to Apple's API.
    ///
    /// - Parameters:
    ///   - types: The classes, in any order.
    ///   - versionIdentifier: A label for the version, which is not part of the hashes.
    /// - Throws: 134060 (`coreData`) for a contradiction: a relationship without an inverse or to a class that is not
    ///   listed, a trait that does not fit the type, two entities with the same name. The error names class and
    ///   property, also under `NSModelEntityNameErrorKey` and `NSModelPropertyNameErrorKey`.
    public convenience init(for types: NSManagedObject.Type..., versionIdentifier: String = "") throws {
        try self.init(for: types, versionIdentifier: versionIdentifier)
    }

    /// Makes a model from a list of classes that describe their entities.
    ///
    /// - Parameters:
    ///   - types: The classes, in any order.
    ///   - versionIdentifier: A label for the version, which is not part of the hashes.
    /// - Throws: The errors of the form that takes the classes one by one.
    public convenience init(for types: [NSManagedObject.Type], versionIdentifier: String = "") throws {
        self.init()
        do {
            var builder = ClassModelBuilder()
            try builder.fill(self, with: types)
        } catch {
            throw error.cocoaError
        }
        versionIdentifiers = [versionIdentifier]
    }

    /// Makes the model of a version.
    ///
    /// - Parameter version: The version.
    /// - Throws: The errors of the form that takes classes.
    public convenience init(version: any ManagedModelVersion.Type) throws {
        try self.init(for: version.entities, versionIdentifier: version.versionIdentifier)
    }
}
