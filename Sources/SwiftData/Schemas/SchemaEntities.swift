/// Makes the entities of classes, with their inheritance and the inverses of their relationships.
struct SchemaEntities {
    private let records: [ModelRecord]
    private let entities: [String: Schema.Entity]

    init(_ records: [String: ModelRecord]) {
        self.records = records.values.sorted { $0.entityName < $1.entityName }
        entities = records.mapValues { Schema.Entity($0) }
    }

    /// The entities that inherit from none.
    func roots() -> [Schema.Entity] {
        connectInverses()
        // The entities are kept in sets, and do not change any more.
        for record in records.sorted(by: { $0.depth > $1.depth }) {
            guard let above = record.superrecord, let entity = entities[record.entityName] else { continue }
            entities[above.entityName]?.subentities.insert(entity)
        }
        return records.filter { $0.superrecord == nil }.compactMap { entities[$0.entityName] }
    }

    // MARK: - Inverses

    private func relationship(_ record: ModelRecord, _ name: String) -> Schema.Relationship? {
        entities[record.entityName]?.storedProperties.first { $0.name == name } as? Schema.Relationship
    }

    /// Sets the inverses that are named, and those of plain pairs.
    private func connectInverses() {
        for record in records {
            for property in record.ownProperties {
                guard let keyPath = (property.metadata as? Schema.Relationship)?.inverseKeyPath else { continue }
                guard let type = Swift.type(of: keyPath).rootType as? any PersistentModel.Type,
                    let other = ModelRecord.of(type).propertyIfStored(keyPath),
                    let here = relationship(record, property.name),
                    let there = relationship(ModelRecord.of(type).owner(of: other), other.name)
                else {
                    fatalError(
                        "SwiftData: the inverse \(keyPath) of \(record.type).\(property.name) is no relationship."
                    )
                }
                here.inverseName = there.name
                there.inverseName = here.name
            }
        }
        for record in records {
            for property in record.ownProperties where property.metadata == nil {
                guard let here = relationship(record, property.name), here.inverseName == nil,
                    let other = plainPartner(of: property, in: record),
                    let there = relationship(other.record, other.name), there.inverseName == nil
                else { continue }
                here.inverseName = there.name
                there.inverseName = here.name
            }
        }
    }

    /// The only relationship that leads back, if both sides are plain and there is one each way.
    ///
    /// A to-one side has to be optional. If a side has options, then its inverse is named or there is none: stores
    /// that SwiftData has made show that.
    private func plainPartner(
        of property: ModelProperty,
        in record: ModelRecord
    ) -> (record: ModelRecord, name: String)? {
        func target(_ property: ModelProperty) -> ModelRecord? {
            switch property.kind {
            case .toOne(let type): property.isOptional ? ModelRecord.of(type) : nil
            case .toMany(let type): ModelRecord.of(type)
            case .attribute: nil
            }
        }
        func pairs(_ from: ModelRecord, _ to: ModelRecord) -> [ModelProperty] {
            from.ownProperties.filter { property in
                switch property.kind {
                case .toOne(let type), .toMany(let type): ModelRecord.of(type) === to
                case .attribute: false
                }
            }
        }
        guard let other = target(property), other !== record else { return nil }
        let back = pairs(other, record)
        guard pairs(record, other).count == 1, back.count == 1, let only = back.first, only.metadata == nil,
            target(only) != nil
        else { return nil }
        return (other, only.name)
    }
}
