import Foundation
import StrataLocks
import StrataPredicates
import StrataRows

/// A validation rule of the program for one property.
///
/// It may replace the value.
///
/// It throws the error that the save shall report; by custom, that is a `CocoaError` of the validation codes.
///
/// ```swift
/// final class Priced: NSManagedObject {
///     override class var propertyValidators: [String: PropertyValidator] {
///         ["price": { _, value in if (value as? Int64 ?? 0) < 0 { throw CocoaError(.validationNumberTooSmall) } }]
///     }
/// }
/// ```
public typealias PropertyValidator = (_ object: NSManagedObject, _ value: inout Any?) throws -> Void

extension NSManagedObject {
    // MARK: - All properties

    /// Checks every property against the model and the rules of the class.
    final func validateProperties() throws {
        var errors: [any Error] = []
        let row = readableRow()
        let values = row.unsafe
        // Most values have no rules, and most objects have no value that could not be stored.
        if extras?.refused.isEmpty == false {
            for slot in layout.slots {
                do {
                    try validate(slot, row)
                } catch {
                    errors.append(error)
                }
            }
        } else {
            for rule in layout.rules where values.isNull(rule.slot) ? rule.isRequired : rule.hasPredicates {
                do {
                    try validate(layout.slots[rule.slot], row)
                } catch {
                    errors.append(error)
                }
            }
        }
        for place in layout.numberPlaces where place.isNaN(in: values) && !FaultGuard.numberCheck.isOff {
            let slot = layout.slots[place.slot]
            errors.append(noNumber(slot, publicValue(of: slot, in: row)))
        }
        // Most entities have neither of these two, and a loop over an empty list counts references.
        if !layout.limitedToMany.isEmpty {
            for slot in layout.limitedToMany {
                do {
                    try validate(slot)
                } catch {
                    errors.append(error)
                }
            }
        }
        if !layout.transients.isEmpty {
            for slot in layout.transients where !slot.property.isOptional || !slot.property.validationPredicates.isEmpty
            {
                do {
                    var value = anyValue(forKey: slot.name)
                    try validateByModel(&value, forKey: slot.name)
                } catch {
                    errors.append(error)
                }
            }
        }
        for (key, validator) in Swift.type(of: self).propertyValidators {
            do {
                let before = anyValue(forKey: key)
                var value = before
                try apply(validator, to: &value, forKey: key)
                if (value as? NSObject) != (before as? NSObject) { setAnyValue(value, forKey: key) }
            } catch {
                errors.append(error)
            }
        }
        try ValidationErrors.throwIfAny(errors)
    }

    /// Checks a stored property; its value is boxed only if the model has predicates for it.
    private final func validate(_ slot: Slot, _ row: Row) throws {
        guard !row.isNull(slot.index) else {
            if extras?.refused[slot.index] != nil { throw noArchive(slot.name) }
            if !slot.isOptional, !isDerived(slot), !isInMissingComposite(slot, row) {
                throw validationError(
                    .validationMissingMandatoryProperty,
                    forKey: slot.name,
                    value: nil,
                    text: "is required, but has no value"
                )
            }
            return
        }
        guard slot.hasRules else { return }
        try validatePredicates(of: slot.property, publicValue(of: slot, in: row))
    }

    /// Whether a slot is an element of an optional composite attribute without any value; then no element is
    /// required.
    private func isInMissingComposite(_ slot: Slot, _ row: Row) -> Bool {
        layout.optionalElements[slot.index]?.allSatisfy { row.isNull($0) } ?? false
    }

    /// Refuses a value that a store would store as null: one that is not a number, or that a value transformer refuses.
    package final func requireStorableValues() throws {
        if let refused = extras?.refused.first { throw noArchive(layout.slots[refused.key].name) }
        guard let current, let slot = current.slotWithoutNumber else { return }
        throw noNumber(slot, publicValue(of: slot, in: current))
    }

    /// The error for a value of a transformable attribute that cannot be archived.
    ///
    /// It leaves out the value, which may contain a date that is not a number (see ``noNumber(_:_:)``).
    private func noArchive(_ key: String) -> CocoaError {
        validationError(
            .managedObjectValidation,
            forKey: key,
            value: nil,
            text: "has a value that its value transformer cannot store"
        )
    }

    /// The error for a value that a database would store as null.
    ///
    /// It leaves out a date. The description of a date that is not a number stops the program (Foundation on Linux),
    /// so printing the error would stop it too.
    private func noNumber(_ slot: Slot, _ value: Any?) -> CocoaError {
        slot.type == .date
            ? validationError(
                .validationInvalidDate,
                forKey: slot.name,
                value: nil,
                text: "has a date that is not a number"
            )
            : validationError(
                .managedObjectValidation,
                forKey: slot.name,
                value: value,
                text: "has a value that is not a number"
            )
    }

    private func isDerived(_ slot: Slot) -> Bool { slot.property is NSDerivedAttributeDescription }

    /// Checks the number of members of the relationships whose members may have changed.
    private func validate(_ slot: ToManySlot) throws {
        guard flags.contains(.inserted) || extras?.toMany[slot.index]?.hasChanges == true else { return }
        try validateMembers(of: slot)
    }

    /// Checks the number of members of a relationship, whether they have changed or not.
    package final func validateMembers(of slot: ToManySlot) throws {
        try validate(try readMembers(slot).count, of: slot.relationship.property)
    }

    /// Checks the number of members of a to-many relationship.
    private func validate(_ count: Int, of relationship: NSRelationshipDescription) throws {
        // 0 means that there is no minimum, even for a relationship that is not optional.
        let minimum = relationship.minCount
        let maximum = relationship.maxCount
        // An optional relationship may be empty; if it is not empty, then the minimum applies.
        if count < minimum, !(relationship.isOptional && count == 0) {
            throw validationError(
                .validationRelationshipLacksMinimumCount,
                forKey: relationship.name,
                value: nil,
                text: "has \(count) objects, but needs \(minimum)"
            )
        }
        if maximum > 1, count > maximum {
            throw validationError(
                .validationRelationshipExceedsMaximumCount,
                forKey: relationship.name,
                value: nil,
                text: "has \(count) objects, but may have \(maximum)"
            )
        }
    }

    // MARK: - One value

    /// Calls a validation rule of the class.
    ///
    /// If the rule replaces the value, then the new value has to pass the rules of the model as well.
    final func apply(_ validator: PropertyValidator, to value: inout Any?, forKey key: String) throws {
        let before = value
        try validator(self, &value)
        if (value as? NSObject) != (before as? NSObject) { try validateByModel(&value, forKey: key) }
    }

    /// Checks a value against the model's rules for a property.
    final func validateByModel(_ value: inout Any?, forKey key: String) throws {
        guard let property = entity.propertiesByName[key] else { return }
        if let relationship = property as? NSRelationshipDescription, relationship.isToMany {
            try validate(Self.memberCount(value), of: relationship)
            // Without members there is nothing left to check: the code above has checked whether some are required.
            if value == nil || value is NSNull { return }
        }
        let isEmpty = value == nil || value is NSNull
        if isEmpty {
            guard property.isOptional || property is NSDerivedAttributeDescription else {
                throw validationError(
                    .validationMissingMandatoryProperty,
                    forKey: key,
                    value: nil,
                    text: "is required, but has no value"
                )
            }
            return
        }
        if let slot = layout.slot(named: key), slot.type == .transformable {
            guard let value, slot.attribute?.archived(value) == nil else {
                return try validatePredicates(of: property, value)
            }
            throw noArchive(key)
        }
        if let slot = layout.slot(named: key), slot.kind != .reference {
            let row = Row(layout: layout, key: 0)
            do {
                try row.setAny(value, slot)
            } catch {
                throw validationError(
                    .managedObjectValidation,
                    forKey: key,
                    value: value,
                    text: "is \(slot.typeName), so it cannot take this value"
                )
            }
            if row.isNaN(slot) { throw noNumber(slot, value) }
        }
        try validatePredicates(of: property, value)
    }

    private static func memberCount(_ value: Any?) -> Int {
        switch value {
        case let set as NSSet: set.count
        case let ordered as NSOrderedSet: ordered.count
        case let array as NSArray: array.count
        case let set as Set<AnyHashable>: set.count
        case let array as [Any]: array.count
        default: 0
        }
    }

    private func validatePredicates(of property: NSPropertyDescription, _ value: Any?) throws {
        for (index, predicate) in property.validationPredicates.enumerated() where !predicate.evaluate(with: value) {
            let warning = property.validationWarnings.indices.contains(index) ? property.validationWarnings[index] : nil
            let code =
                (warning as? NSNumber).map { CocoaError.Code(rawValue: $0.intValue) }
                ?? (warning as? Int).map { CocoaError.Code(rawValue: $0) }
            let text = (warning as? String) ?? "must fulfil \(predicate.formatText)"
            throw validationError(
                code ?? .managedObjectValidation,
                forKey: property.name,
                value: value,
                text: text,
                predicate: predicate
            )
        }
    }

    final func validationError(
        _ code: CocoaError.Code,
        forKey key: String,
        value: Any?,
        text: String,
        predicate: NSPredicate? = nil
    ) -> CocoaError {
        var userInfo: [String: Any] = [
            NSLocalizedDescriptionKey: "\(entity.name ?? "").\(key) \(text).",
            NSValidationObjectErrorKey: self,
            NSValidationKeyErrorKey: key,
        ]
        if let value { userInfo[NSValidationValueErrorKey] = value }
        if let predicate { userInfo[NSValidationPredicateErrorKey] = predicate }
        return CocoaError.described(code, userInfo: userInfo)
    }

    // MARK: - Deletion

    /// Refuses relationships to objects that the context deletes, if they were set after the delete rules had run.
    ///
    /// A save would store a key that leads nowhere.
    final func requireLivingDestinations() throws {
        guard let context, !isFault else { return }
        var errors: [any Error] = []
        func check(_ relationship: Relationship, _ reference: ObjectReference) {
            guard !relationship.mayDangle, let destination = context.registered(reference, near: self),
                // If another context or process has deleted the object, then that is a conflict.
                destination.flags.contains(.deletePropagated), !destination.flags.contains(.gone)
            else { return }
            errors.append(deletedDestination(destination, forKey: relationship.name))
        }
        let row = readableRow()
        // If another context or process has set the relationship, then the store clears it.
        let base = flags.contains(.inserted) ? nil : extras?.base ?? row
        for slot in layout.referenceSlots {
            guard let relationship = slot.relationship, let reference = row.reference(slot),
                reference != base?.reference(slot)
            else { continue }
            check(relationship, reference)
        }
        for (slot, state) in zip(layout.toMany, extras?.toMany ?? []) where slot.inverse?.isToMany == true {
            guard !slot.isTransient else { continue }
            for reference in state?.added ?? [] { check(slot.relationship, reference) }
        }
        try ValidationErrors.throwIfAny(errors)
    }

    /// Refuses that this deleted object is a member of one-to-many relationships to which it was added after its delete
    /// rules had run.
    ///
    /// A save would store nothing of that, but the owner would keep a member without a row.
    final func requireNoOwners() throws {
        guard flags.isSuperset(of: [.deletePropagated, .ownsRow]), flags.isDisjoint(with: .gone),
            let context, let current
        else { return }
        var errors: [any Error] = []
        for slot in layout.referenceSlots {
            guard let inverse = slot.inverse, inverse.isToMany, !inverse.mayDangle,
                let owner = current.reference(slot).flatMap({ context.registered($0, near: self) }),
                owner.flags.isDisjoint(with: [.deleted, .gone]), case .toMany(let index)? = owner.place(of: inverse),
                owner.extras?.toMany[index]?.added.contains(reference) == true
            else { continue }
            errors.append(owner.deletedDestination(self, forKey: inverse.name))
        }
        try ValidationErrors.throwIfAny(errors)
    }

    private func deletedDestination(_ destination: NSManagedObject, forKey key: String) -> CocoaError {
        validationError(
            .managedObjectValidation,
            forKey: key,
            value: destination,
            text: "leads to \(destination.objectID), which is deleted"
        )
    }

    /// Refuses a deletion that a relationship with the deny rule forbids.
    final func validateDeleteRules() throws {
        var errors: [any Error] = []
        for (name, relationship) in entity.relationshipsByName where relationship.deleteRule == .denyDeleteRule {
            let remaining: Int
            switch layout.places[name] {
            case .toMany(let index):
                let members = try readMembers(layout.toMany[index])
                remaining = context?.objects(for: members, near: self).count { !$0.isDeleted } ?? 0
            case .slot(let index): remaining = toOne(layout.slots[index]).map { $0.isDeleted ? 0 : 1 } ?? 0
            default: remaining = 0
            }
            guard remaining > 0 else { continue }
            errors.append(
                validationError(
                    .validationRelationshipDeniedDelete,
                    forKey: name,
                    value: nil,
                    text: "denies the deletion of \(objectID) as long as it has \(remaining) objects"
                )
            )
        }
        try ValidationErrors.throwIfAny(errors)
    }
}

extension Slot {
    /// Whether the model has predicates for the property.
    fileprivate var hasRules: Bool { !property.validationPredicates.isEmpty }
}
