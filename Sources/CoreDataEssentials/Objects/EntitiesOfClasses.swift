import Foundation
import StrataRows
import Synchronization

// How the entity of a class is found.

/// The models in use, for code that names a class but no context.
enum FrozenModels {
    /// The entity of a class, in the most recently used model that has one; `nil` if no model has one.
    static func entity(for type: NSManagedObject.Type) -> NSEntityDescription? {
        let models = immortalModels.withLock { $0 }
        for model in models.reversed() {
            if let entity = model.frozen.entity(for: type) { return entity }
        }
        return nil
    }
}

extension FrozenModel {
    /// The entity whose objects are of class `type`; of several, the one with the name of the class, else the
    /// topmost.
    func entity(for type: NSManagedObject.Type) -> NSEntityDescription? {
        // Class names are compared as text, which takes microseconds, so each class is looked up only once.
        if let known = entitiesByClass.withLock({ $0[ObjectIdentifier(type)] }) { return known }
        guard let found = findEntity(for: type) else { return nil }
        entitiesByClass.withLock { $0[ObjectIdentifier(type)] = found }
        return found
    }

    private func findEntity(for type: NSManagedObject.Type) -> NSEntityDescription? {
        let full = ManagedClasses.fullName(of: type)
        var matching = entities.filter { $0.managedObjectClassName == full }
        if matching.isEmpty {
            matching = entities.filter { ManagedClasses.matches($0.managedObjectClassName ?? "", type) }
        }
        if matching.count > 1, let named = matching.first(where: { $0.name == ManagedClasses.bareName(of: type) }) {
            return named
        }
        return matching.first
    }

    /// The entity that a class means: by the class names of the model, else by the class's `entity()`.
    ///
    /// If a class overrides `entity()`, then this runs code of the program.
    func entity(meantBy type: NSManagedObject.Type) -> NSEntityDescription? {
        if let entity = entity(for: type) { return entity }
        let own = type.entity()
        guard own.model != nil else { return nil }
        return own.name.flatMap { entitiesByName[$0] }
    }
}

extension NSManagedObjectContext {
    /// Refuses to make objects of a class that the program has twice, unless an earlier use determines which one is
    /// meant.
    ///
    /// If plain objects were made instead, then casts to the class would stop the program.
    final func requireClasses(for plan: FetchPlan) throws {
        let layouts = plan.layout.schema.entities
        for number in plan.entityNumbers {
            let layout = layouts[number - 1]
            if let doubt = layout.objectClass.doubt(about: layout.entity) { throw FetchPlanner.refused(doubt) }
        }
    }

    /// Notes the class that a request promises; if several classes have the name that the model gives, then this
    /// decides.
    ///
    /// Any thread may call it.
    package final func registerClass(_ type: Any.Type, of specification: FetchSpecification) {
        guard let type = type as? NSManagedObject.Type, ManagedClasses.register(type),
            let model = persistentStoreCoordinator?.frozenModel,
            let entity = try? FetchPlanner(model: model).entity(of: specification)
        else { return }
        entity.objectClass.registerClass(type, for: entity)
    }
}

extension NSPersistentStoreCoordinator {
    /// Reports, once for each model, the entities whose class is missing in the program or exists twice.
    ///
    /// Their objects are of the class of the super-entity, or plain ones.
    func reportMissingClasses() {
        ClassRecords.readNewImages()
        guard !frozenModel.hasReportedClasses.exchange(true, ordering: .relaxed) else { return }
        let troubles = frozenModel.entities.compactMap { entity -> String? in
            guard !entity.isAbstract, let trouble = entity.objectClass.trouble(with: entity) else { return nil }
            let type = entity.objectClass.type(of: entity)
            return
                "For entity \(entity.name ?? "") \(trouble); as it is, its objects are of class \(ManagedClasses.fullName(of: type))."
        }
        guard !troubles.isEmpty else { return }
        let error = CocoaError.described(
            .coreData,
            userInfo: [NSLocalizedDescriptionKey: troubles.joined(separator: " ")]
        )
        report(error, "looking for the classes that the model names")
    }
}

extension NSEntityDescription {
    /// The layout for making an object with or without a context; a model that is not in use stops the program.
    ///
    /// Layouts in use are immortal, so making an object counts no reference to its layout.
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
        // A model that is used only for objects without a context is put to use here.
        managedObjectModel.freeze()
        return layout
    }
}
