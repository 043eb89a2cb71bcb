import Foundation
import StrataPredicates

extension NSManagedObjectContext {
    /// The value of a fetched property: an array of objects, fetched anew each time.
    ///
    /// In the request, `$FETCH_SOURCE` is the object, and `$FETCHED_PROPERTY` is the property's description.
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
            if !failedReads.isEmpty { failedReads.forgetFailedComputation(name, of: object) }
            return objects
        } catch {
            failedReads.recordFailedComputation(name, of: object, error: error)
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
    /// - Returns: `nil` if the model has no such entity, or if the context has no coordinator. Any thread may call
    ///   the method.
    public class func entity(forEntityName entityName: String, in context: NSManagedObjectContext)
        -> NSEntityDescription?
    {
        context.persistentStoreCoordinator?.managedObjectModel.entitiesByName[entityName]
    }

    /// Makes an object of the entity with a name and inserts it.
    ///
    /// The call stops the program if the context's model has no such entity. It also stops the program if several
    /// modules have a class of the name that the model gives, and the program has not determined which one the entity
    /// means. This is the case if it has used none of them, or more than one.
    ///
    /// ```swift
    /// let venue = NSEntityDescription.insertNewObject(forEntityName: "Venue", into: context)
    /// venue.setValue("Coliseu", forKey: "name")
    /// ```
    ///
    /// - Parameters:
    ///   - entityName: The name of an entity that is not abstract.
    ///   - context: The context; the caller must be inside its scope.
    /// - Returns: The object, of the class that the model names; cast it to that class.
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
