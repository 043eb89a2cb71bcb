import Foundation
import StrataPredicates

extension NSManagedObjectContext {
    /// The answer of a fetched property: an array of objects, fetched anew each time.
    ///
    /// The request's `$FETCH_SOURCE` is the object, and `$FETCHED_PROPERTY` the property's description.
    final func valuesOfFetchedProperty(_ name: String, of object: NSManagedObject) -> Any? {
        guard let property = object.entity.propertiesByName[name] as? NSFetchedPropertyDescription,
            let template = property.fetchRequest
        else { return nil }
        let request = template.duplicate()
        request.predicate = template.predicate?.withSubstitutionVariables([
            "FETCH_SOURCE": object, "FETCHED_PROPERTY": property,
        ])
        do {
            let objects = try fetch(request)
            if !failedReads.isEmpty { failedReads.noteComputedRead(name, of: object) }
            return objects
        } catch {
            failedReads.noteComputed(name, of: object, error)
            coordinator?.report(error, "fetching \"\(name)\" of \(object.objectID)")
            return []
        }
    }
}

extension NSEntityDescription {
    /// The entity with a name in a context's model.
    ///
    /// ```swift
    /// print(NSEntityDescription.entity(forEntityName: "Venue", in: context)?.attributesByName.keys.sorted() ?? [])
    /// ```
    ///
    /// - Parameters:
    ///   - entityName: The name of the entity in the model.
    ///   - context: A context whose coordinator has the model.
    /// - Returns: `nil` if the model has none, or the context no coordinator. May be called on any thread.
    public class func entity(forEntityName entityName: String, in context: NSManagedObjectContext)
        -> NSEntityDescription?
    {
        context.persistentStoreCoordinator?.managedObjectModel.entitiesByName[entityName]
    }

    /// Makes an object of the entity with a name and inserts it.
    ///
    /// Stops the program if the context's model has no such entity. Also stops it if several modules have a class of
    /// the name that the model gives, and the program has not said which one the entity means: it has used none of
    /// them, or more than one.
    ///
    /// ```swift
    /// let venue = NSEntityDescription.insertNewObject(forEntityName: "Venue", into: context)
    /// venue.setValue("Coliseu", forKey: "name")
    /// ```
    ///
    /// - Parameters:
    ///   - entityName: The name of an entity that is not abstract.
    ///   - context: The context, inside whose scope the caller is.
    /// - Returns: The object, of the class that the model names; cast it.
    public class func insertNewObject(forEntityName entityName: String, into context: NSManagedObjectContext)
        -> NSManagedObject
    {
        guard let entity = entity(forEntityName: entityName, in: context) else {
            fatalError("CoreData: the model of \(context.describedName) has no entity \"\(entityName)\".")
        }
        let type = entity.layoutInUse(context).takeUnretainedValue().objectType
        if let doubt = entity.objectClass.doubt(about: entity) { fatalError("CoreData: \(doubt)") }
        return type.init(entity: entity, insertInto: context)
    }
}
