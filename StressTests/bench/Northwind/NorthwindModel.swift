import CoreData

extension NorthwindData {
    /// The model of the tables: an entity for each, with an attribute for each column.
    func model() -> NSManagedObjectModel {
        let model = NSManagedObjectModel()
        model.entities = tables.map { table in
            let entity = NSEntityDescription()
            entity.name = table.name
            if table.name == "Order" { entity.managedObjectClassName = NSStringFromClass(NorthwindOrder.self) }
            entity.properties = table.columns.map { column in
                let attribute = NSAttributeDescription()
                attribute.name = column.name
                attribute.type =
                    switch column.kind {
                    case .text: .string
                    case .integer: .integer64
                    case .real: .double
                    }
                attribute.isOptional = ["region", "shippedDate", "shipRegion"].contains(column.name)
                return attribute
            }
            return entity
        }
        return model
    }

    /// Fills an empty store.
    func fill(_ stack: FrameworkSide.Stack) throws {
        try stack.context.performAndWait {
            for table in tables {
                let objects = table.rows.map { row in
                    var values: [String: Any] = [:]
                    for (column, cell) in zip(table.columns, row) {
                        switch cell {
                        case .text(let text): values[column.name] = text
                        case .integer(let number): values[column.name] = number
                        case .real(let number): values[column.name] = number
                        case .null: break
                        }
                    }
                    return values
                }
                _ = try stack.context.execute(NSBatchInsertRequest(entityName: table.name, objects: objects))
            }
        }
    }

    /// Makes the tables in an empty database, and fills them.
    func fill(_ database: RawDatabase) throws {
        try database.execute("BEGIN IMMEDIATE")
        for table in tables {
            let columns = table.columns.map { column in
                switch column.kind {
                case .text: "\"\(column.name)\" VARCHAR"
                case .integer: "\"\(column.name)\" INTEGER"
                case .real: "\"\(column.name)\" FLOAT"
                }
            }
            try database.execute(
                "CREATE TABLE \"\(table.name)\" (\(columns.joined(separator: ", ")), PRIMARY KEY (\"\(table.columns[0].name)\"))"
            )
            let places = table.columns.map { _ in "?" }.joined(separator: ", ")
            let insert = try database.prepare("INSERT INTO \"\(table.name)\" VALUES (\(places))")
            for row in table.rows {
                for (index, cell) in zip(Int32(1)..., row) {
                    switch cell {
                    case .text(let text): insert.bind(text, at: index)
                    case .integer(let number): insert.bind(Int64(number), at: index)
                    case .real(let number): insert.bind(number, at: index)
                    case .null: insert.bindNull(at: index)
                    }
                }
                try insert.run()
            }
        }
        try database.execute("COMMIT")
    }
}
