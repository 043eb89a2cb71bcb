import CoreData
import CoreDataJobs

#if canImport(CoreDataPostgreSQL)
import CoreDataPostgreSQL
#endif

/// The model, in Swift.
package enum StorefrontModel {
    /// There is one for the process: a model stays in memory once a coordinator has used it.
    package static let model = Result { try make() }

    private static func make() throws -> NSManagedObjectModel {
        let product = entity("Product", Product.self)
        product.properties = [
            attribute("sku", .string), attribute("name", .string), attribute("priceCents", .integer64),
            attribute("stock", .integer64), attribute("delivered", .integer64),
            attribute("image", .binaryData, optional: true),
        ]
        product.attributesByName["image"]?.allowsExternalBinaryDataStorage = true
        // Validation refuses a save that would sell more than there is in stock.
        product.attributesByName["stock"]?.setValidationPredicates(
            [NSPredicate(format: "SELF >= 0")],
            withValidationWarnings: ["too few in stock"]
        )
        product.uniquenessConstraints = [["sku"]]

        let order = entity("Order", Order.self)
        let total = NSDerivedAttributeDescription()
        total.name = "totalCents"
        total.type = .integer64
        total.derivationExpression = NSExpression(format: "lines.amountCents.@sum")
        order.properties = [
            attribute("number", .uuid), attribute("customer", .string), attribute("createdAt", .date),
            attribute("updatedAt", .date), attribute("state", .integer16), total,
        ]
        order.uniquenessConstraints = [["number"]]
        order.indexes = [
            index("byState", of: order, on: "state", "createdAt"), index("byUpdate", of: order, on: "updatedAt"),
        ]

        let line = entity("OrderLine", OrderLine.self)
        line.properties = [attribute("quantity", .integer64), attribute("amountCents", .integer64)]

        let payment = entity("Payment", Payment.self)
        payment.isAbstract = true
        payment.properties = [attribute("amountCents", .integer64)]
        let card = entity("CardPayment", CardPayment.self)
        card.properties = [attribute("lastDigits", .string)]
        let invoice = entity("InvoicePayment", InvoicePayment.self)
        invoice.properties = [attribute("dueAt", .date)]
        payment.subentities = [card, invoice]

        let shipment = entity("Shipment", Shipment.self)
        shipment.properties = [attribute("worker", .string), attribute("shippedAt", .date)]

        relate(order, "lines", to: line, inverse: "order", isToMany: true)
        relate(order, "payment", to: payment, inverse: "order", isToMany: false)
        relate(order, "shipments", to: shipment, inverse: "order", isToMany: true)
        relate(product, "lines", to: line, inverse: "product", isToMany: true, rule: .denyDeleteRule)

        let model = NSManagedObjectModel()
        model.entities = [product, order, line, payment, card, invoice, shipment]
        guard let merged = NSManagedObjectModel(byMerging: [model, JobEntities.model()]) else {
            throw HTTPError(500, "the model has an entity of the name of one of jobs")
        }
        return merged
    }

    private static func entity(_ name: String, _ type: AnyClass) -> NSEntityDescription {
        let entity = NSEntityDescription()
        entity.name = name
        entity.managedObjectClassName = NSStringFromClass(type)
        return entity
    }

    private static func attribute(
        _ name: String,
        _ type: NSAttributeDescription.AttributeType,
        optional: Bool = false
    ) -> NSAttributeDescription {
        let attribute = NSAttributeDescription()
        attribute.name = name
        attribute.type = type
        attribute.isOptional = optional
        return attribute
    }

    private static func index(_ name: String, of entity: NSEntityDescription, on keys: String...)
        -> NSFetchIndexDescription
    {
        let elements = keys.compactMap { entity.propertiesByName[$0] }.map {
            NSFetchIndexElementDescription(property: $0, collationType: .binary)
        }
        return NSFetchIndexDescription(name: name, elements: elements)
    }

    /// Relates an owner to the objects that it owns, and back.
    private static func relate(
        _ owner: NSEntityDescription,
        _ name: String,
        to owned: NSEntityDescription,
        inverse inverseName: String,
        isToMany: Bool,
        rule: NSDeleteRule = .cascadeDeleteRule
    ) {
        let relationship = NSRelationshipDescription()
        relationship.name = name
        relationship.destinationEntity = owned
        relationship.minCount = 0
        relationship.maxCount = isToMany ? 0 : 1
        relationship.isOptional = true
        relationship.deleteRule = rule
        let inverse = NSRelationshipDescription()
        inverse.name = inverseName
        inverse.destinationEntity = owner
        inverse.minCount = 1
        inverse.maxCount = 1
        inverse.isOptional = false
        inverse.deleteRule = .nullifyDeleteRule
        relationship.inverseRelationship = inverse
        inverse.inverseRelationship = relationship
        owner.properties.append(relationship)
        owned.properties.append(inverse)
    }
}

/// Opens the store of the shop.
package enum StorefrontStore {
    /// Makes a container with the store at `url`, a file or a PostgreSQL database.
    ///
    /// If there is no store, it is created.
    ///
    /// It follows the writes of the other process, so that contexts that merge automatically, and live results, see
    /// them too.
    package static func open(at url: URL) throws -> NSPersistentContainer {
        let model = try StorefrontModel.model.get()
        let container = NSPersistentContainer(name: "Storefront", managedObjectModel: model)
        let description = NSPersistentStoreDescription(url: url)
        if !url.isFileURL {
            description.type = try typeOfDatabases()
        }
        // A request that waits longer for another process is answered with 503.
        description.timeout = 30
        container.persistentStoreDescriptions = [description]
        // This turns on the history too.
        container.followsRemoteChanges = true
        var failure: (any Error)?
        container.loadPersistentStores { _, error in failure = error }
        if let failure { throw failure }
        return container
    }

    /// Removes the store of an earlier demonstration.
    package static func remove(at url: URL) throws {
        guard url.isFileURL else {
            let coordinator = NSPersistentStoreCoordinator(managedObjectModel: try StorefrontModel.model.get())
            return try coordinator.destroyPersistentStore(at: url, ofType: try typeOfDatabases())
        }
        for suffix in ["", "-wal", "-shm"] { try? FileManager.default.removeItem(atPath: url.path + suffix) }
    }

    private static func typeOfDatabases() throws -> String {
        #if canImport(CoreDataPostgreSQL)
        return NSPostgreSQLStoreType
        #else
        throw HTTPError(
            400,
            "this program was built without libpq: install libpq-dev, and build it with STRATA_POSTGRESQL=1"
        )
        #endif
    }
}
