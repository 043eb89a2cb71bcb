import CoreData

/// A coordinator with two stores: notes are in the first, people in the second, and labels in both.
package struct TwoStores {
    package let folder: ScratchFolder
    package let coordinator: NSPersistentStoreCoordinator
    package let first: NSPersistentStore
    package let second: NSPersistentStore

    package init(_ kind: StoreKind) throws {
        let note = GuideModel.entity("Note", NSManagedObject.self)
        note.properties = [GuideModel.attribute("text", .string)]
        let person = GuideModel.entity("Person", NSManagedObject.self)
        person.properties = [GuideModel.attribute("name", .string)]
        let label = GuideModel.entity("Label", NSManagedObject.self)
        label.properties = [GuideModel.attribute("title", .string)]
        GuideModel.relate(note, "author", .one(.nullifyDeleteRule), person, "notes", .many(.nullifyDeleteRule))
        let model = NSManagedObjectModel()
        model.entities = [note, person, label]
        model.setEntities([note, label], forConfigurationName: "Notes")
        model.setEntities([person, label], forConfigurationName: "People")
        folder = try ScratchFolder()
        coordinator = NSPersistentStoreCoordinator(managedObjectModel: model)
        first = try coordinator.addPersistentStore(
            type: kind.type,
            configuration: "Notes",
            at: folder.file("notes.sqlite")
        )
        second = try coordinator.addPersistentStore(
            type: kind.type,
            configuration: "People",
            at: folder.file("people.sqlite")
        )
    }

    /// A context with a private queue.
    package func context() -> NSManagedObjectContext {
        let context = NSManagedObjectContext(.privateQueue)
        context.persistentStoreCoordinator = coordinator
        return context
    }

    /// Inserts an object with these values.
    @discardableResult
    package func insert(_ entity: String, _ values: [String: Any], _ context: NSManagedObjectContext) -> NSManagedObject
    {
        let object = NSEntityDescription.insertNewObject(forEntityName: entity, into: context)
        object.setValuesForKeys(values)
        return object
    }
}
