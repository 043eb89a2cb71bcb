import CoreData
import Expectations
import StrataRows
import TestSupport
import Testing

@Suite("Validation")
struct ValidationTests {
    /// A valid form with one page.
    private func form(_ context: NSManagedObjectContext) -> Form {
        let form = Form(context: context)
        form.title = "title"
        form.weight = 1
        form.pages = [page(context)]
        return form
    }

    private func page(_ context: NSManagedObjectContext) -> NSManagedObject {
        NSEntityDescription.insertNewObject(forEntityName: "Page", into: context)
    }

    /// The error of a save that has to fail.
    private func failure(_ context: NSManagedObjectContext) throws -> CocoaError {
        try #require(throws: CocoaError.self) { try context.save() }
    }

    /// The codes of an error, by the keys that the errors concern.
    private func codes(_ error: CocoaError) -> [String: Int] {
        let all = error.userInfo[NSDetailedErrorsKey] as? [NSError] ?? [error as NSError]
        return Dictionary(
            all.map { ($0.userInfo[NSValidationKeyErrorKey] as? String ?? "", $0.code) },
            uniquingKeysWith: { $1 }
        )
    }

    // CS-86, CS-81
    @Test(arguments: StoreKind.allCases)
    func `a missing value is refused with object and key, and the save succeeds once it is there`(_ kind: StoreKind)
        throws
    {
        let stack = try Stack.objects(kind)
        try stack.inContext { context in
            let form = form(context)
            form.title = nil
            let error = try failure(context)
            expectEqual(error.code, .validationMissingMandatoryProperty)
            expectEqual(error.userInfo[NSValidationKeyErrorKey] as? String, "title")
            expect(error.userInfo[NSValidationObjectErrorKey] as? Form === form)
            expect(error.localizedDescription.contains("Form.title"))
            expect(form.isInserted)
            form.title = ""
            try context.save()
            form.weight = nil
            try expectEqual(failure(context).code, .validationMissingMandatoryProperty)
            expectThrows(CocoaError.self) { try form.validateForUpdate() }
            expect(form.isUpdated)
            form.weight = 2
            try context.save()
        }
    }

    // CS-87
    @Test(arguments: StoreKind.allCases)
    func `several failures are one error with the details of each`(_ kind: StoreKind) throws {
        let stack = try Stack.objects(kind)
        try stack.inContext { context in
            let form = Form(context: context)
            form.age = 120
            form.code = "lower"
            let other = self.form(context)
            other.memo = "much too long"
            let own = try #require(throws: CocoaError.self) { try form.validateForInsert() }
            expectEqual(own.code, .validationMultipleErrors)
            expectEqual(codes(own), ["title": 1570, "weight": 1570, "age": 1610, "code": 1550, "pages": 1580])
            let error = try failure(context)
            expectEqual(error.code, .validationMultipleErrors)
            let details = try require(error.userInfo[NSDetailedErrorsKey] as? [NSError])
            expectEqual(details.count, 6)
            expectEqual(codes(error)["memo"], 1660)
            expect(details.allSatisfy { $0.userInfo[NSValidationObjectErrorKey] is Form })
        }
    }

    // CS-89
    @Test(arguments: StoreKind.allCases)
    func `a broken rule names predicate, value and the model's code or text (CS-89)`(_ kind: StoreKind) throws {
        let stack = try Stack.objects(kind)
        try stack.inContext { context in
            let form = form(context)
            form.age = 17
            let young = try failure(context)
            expectEqual(young.code, .validationNumberTooSmall)
            expectEqual(young.userInfo[NSValidationValueErrorKey] as? Int16, 17)
            expectEqual((young.userInfo[NSValidationPredicateErrorKey] as? NSPredicate)?.predicateFormat, "SELF >= 18")
            form.age = 100
            try expectEqual(failure(context).code, .validationNumberTooLarge)
            form.age = 50
            form.code = "abc"
            let text = try failure(context)
            expectEqual(text.code, .managedObjectValidation)
            expect(text.localizedDescription.contains("must be capitals"))
            form.code = "ABC"
            try context.save()
        }
    }

    // CS-88
    @Test(arguments: StoreKind.allCases)
    func `a relationship has no fewer and no more members than the model says (CS-88)`(_ kind: StoreKind) throws {
        let stack = try Stack.objects(kind)
        try stack.inContext { context in
            let form = form(context)
            form.pages = []
            try expectEqual(failure(context).code, .validationRelationshipLacksMinimumCount)
            form.pages = Set((0..<4).map { _ in page(context) })
            let error = try failure(context)
            expectEqual(error.code, .validationRelationshipExceedsMaximumCount)
            expectEqual(error.userInfo[NSValidationKeyErrorKey] as? String, "pages")
            form.pages.removeFirst()
            try context.save()
            // The page is removed from the other side.
            form.pages.first?.setValue(nil, forKey: "form")
            try context.save()
            for page in form.pages { page.setValue(nil, forKey: "form") }
            try expectEqual(failure(context).code, .validationRelationshipLacksMinimumCount)
        }
    }

    @Test(arguments: StoreKind.allCases, [(0, false), (1, false), (2, false), (0, true), (1, true), (2, true)])
    func `a to-many relationship may be empty if it has no minimum, or is optional`(
        _ kind: StoreKind,
        _ counts: (minimum: Int, isOptional: Bool)
    ) throws {
        let (minimum, isOptional) = counts
        let model = ObjectModel.make()
        let pages = try require(model.entitiesByName["Form"]?.relationshipsByName["pages"])
        (pages.minCount, pages.isOptional) = (minimum, isOptional)
        let stack = try Stack(kind, model: model)
        let mayBeEmpty = minimum == 0 || isOptional
        let expected: CocoaError.Code? = mayBeEmpty ? nil : .validationRelationshipLacksMinimumCount
        stack.inContext { context in
            func saveFailure() -> CocoaError.Code? {
                do {
                    try context.save()
                    return nil
                } catch {
                    return (error as? CocoaError)?.code
                }
            }
            // Validation applies when the form is inserted, and when it has lost its members.
            let form = form(context)
            form.pages = []
            expectEqual(saveFailure(), expected)
            form.pages = Set((0..<3).map { _ in page(context) })
            expectEqual(saveFailure(), nil)
            form.pages = []
            expectEqual(saveFailure(), expected)
            for empty in [nil, NSNull(), NSSet(), Set<NSManagedObject>()] as [Any?] {
                var value = empty
                do {
                    try form.validateValue(&value, forKey: "pages")
                    expect(mayBeEmpty)
                } catch {
                    expectEqual((error as? CocoaError)?.code, expected)
                }
            }
            // Too few members are an error, whether or not the relationship may be empty.
            form.pages = [page(context)]
            expectEqual(saveFailure(), minimum == 2 ? .validationRelationshipLacksMinimumCount : nil)
        }
    }

    // CS-86
    @Test(arguments: StoreKind.allCases)
    func `a class's own rules are asked, and may replace the value`(_ kind: StoreKind) throws {
        let stack = try Stack.objects(kind)
        let id = try stack.inContext { context in
            let form = form(context)
            form.nickname = "rude"
            try expectEqual(failure(context).code, .validationStringPatternMatching)
            form.nickname = "  nick "
            try context.save()
            expectEqual(form.nickname, "nick")
            return form.objectID
        }
        try stack.inContext { context throws in try expectEqual(context.object(Form.self, id).nickname, "nick") }
    }

    @Test(arguments: StoreKind.allCases)
    func `what a rule puts in the place of a value has to fit the model`(_ kind: StoreKind) throws {
        let entity = GuideModel.entity("Emptying", Emptying.self)
        entity.properties = [GuideModel.attribute("title", .string, optional: false)]
        let model = NSManagedObjectModel()
        model.entities = [entity]
        let stack = try Stack(kind, model: model)
        try stack.inContext { context in
            let object = Emptying(context: context)
            object.title = "empty"
            try expectEqual(failure(context).code, .validationMissingMandatoryProperty)
            expectEqual(object.title, "empty")
            var value: Any? = "empty"
            expectThrows(CocoaError.self) { try object.validateValue(&value, forKey: "title") }
            object.title = "full"
            try context.save()
        }
    }

    @Test
    func `one value is checked before it is set`() throws {
        let stack = try Stack.objects(.memory)
        stack.inContext { context in
            let form = form(context)
            func code(_ value: Any?, _ key: String) -> Int? {
                var value = value
                do {
                    try form.validateValue(&value, forKey: key)
                    return nil
                } catch { return (error as NSError).code }
            }
            expectEqual(code(nil, "title"), 1570)
            expectEqual(code(NSNull(), "title"), 1570)
            expectEqual(code("x", "title"), nil)
            expectEqual(code(5, "title"), 1550)
            expectEqual(code(17, "age"), 1620)
            expectEqual(code(18, "age"), nil)
            expectEqual(code("18", "age"), 1550)
            expectEqual(code(70_000, "age"), 1550)
            expectEqual(code(nil, "age"), nil)
            expectEqual(code(Colour(0, 0), "colour"), 1550)
            expectEqual(code(Colour(1, 0), "colour"), nil)
            expectEqual(code("rude", "nickname"), 1680)
            let pages = (0..<4).map { _ in page(context) }
            expectEqual(code(nil, "pages"), 1580)
            expectEqual(code(Set<NSManagedObject>(), "pages"), 1580)
            expectEqual(code(Set(pages), "pages"), 1590)
            expectEqual(code(NSSet(array: pages), "pages"), 1590)
            expectEqual(code(Set(pages.prefix(3)), "pages"), nil)
            var name: Any? = " n "
            #expect(throws: Never.self) { try form.validateValue(&name, forKey: "nickname") }
            expectEqual(name as? String, "n")
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `every code that a model can name comes out of the save`(_ kind: StoreKind) throws {
        let rules: [(String, NSAttributeDescription.AttributeType, String, Int, any Sendable, any Sendable)] = [
            ("large", .integer32, "SELF <= 10", 1610, 11, 10), ("small", .double, "SELF >= 0.5", 1620, 0.25, 0.5),
            ("late", .date, "timeIntervalSinceReferenceDate <= 10", 1630, 11.0, 10.0),
            ("soon", .date, "timeIntervalSinceReferenceDate >= 10", 1640, 9.0, 10.0),
            ("long", .string, "length <= 3", 1660, "four", "two"), ("short", .string, "length >= 3", 1670, "no", "yes"),
            ("pattern", .string, "SELF MATCHES 'a+'", 1680, "b", "aa"),
        ]
        let entity = GuideModel.entity("Ruled", NSManagedObject.self)
        entity.properties = rules.filter { $0.1 != .date }.map { name, type, format, code, _, _ in
            let attribute = GuideModel.attribute(name, type)
            attribute.setValidationPredicates([NSPredicate(format: format)], withValidationWarnings: [code])
            return attribute
        }
        let early = Date(timeIntervalSinceReferenceDate: 10)
        let late = GuideModel.attribute("late", .date)
        late.setValidationPredicates(
            [NSPredicate(format: "SELF <= %@", early as NSDate)],
            withValidationWarnings: [1630]
        )
        let soon = GuideModel.attribute("soon", .date)
        soon.setValidationPredicates(
            [NSPredicate(format: "SELF >= %@", early as NSDate)],
            withValidationWarnings: [1640]
        )
        entity.properties += [late, soon]
        let model = NSManagedObjectModel()
        model.entities = [entity]
        let stack = try Stack(kind, model: model)
        try stack.inContext { context in
            let object = NSEntityDescription.insertNewObject(forEntityName: "Ruled", into: context)
            func value(_ value: any Sendable, _ type: NSAttributeDescription.AttributeType) -> Any {
                type == .date ? Date(timeIntervalSinceReferenceDate: value as? Double ?? 0) : value
            }
            for (name, type, _, _, bad, _) in rules { object.setValue(value(bad, type), forKey: name) }
            let expected = Dictionary(uniqueKeysWithValues: rules.map { ($0.0, $0.3) })
            expectEqual(codes(try failure(context)), expected)
            for (name, type, _, _, _, good) in rules { object.setValue(value(good, type), forKey: name) }
            try context.save()
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `an object that is both changed and deleted is not validated for its values`(_ kind: StoreKind) throws {
        let stack = try Stack.objects(kind)
        try stack.inContext { context in
            let form = form(context)
            try context.save()
            form.title = nil
            context.delete(form)
            try context.save()
            try expect(context.all(Form.self).isEmpty)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a subclass may validate more`(_ kind: StoreKind) throws {
        let entity = GuideModel.entity("Strict", Strict.self)
        entity.properties = [GuideModel.attribute("low", .integer16), GuideModel.attribute("high", .integer16)]
        let model = NSManagedObjectModel()
        model.entities = [entity]
        let stack = try Stack(kind, model: model)
        try stack.inContext { context in
            let strict = Strict(context: context)
            (strict.low, strict.high) = (5, 3)
            try expectEqual(failure(context).localizedDescription, "low is above high")
            strict.high = 7
            try context.save()
            strict.low = 9
            try expectEqual(failure(context).localizedDescription, "low is above high")
            context.rollback()
            context.delete(strict)
            try expectEqual(failure(context).localizedDescription, "not to be deleted")
        }
    }
}

@ManagedObject
final class Emptying: NSManagedObject {
    @Managed var title: String?

    override class var propertyValidators: [String: PropertyValidator] {
        ["title": { _, value in if value as? String == "empty" { value = nil } }]
    }
}

final class Strict: NSManagedObject {
    @Managed var low: Int16
    @Managed var high: Int16

    private func error(_ text: String) -> CocoaError {
        CocoaError(.managedObjectValidation, userInfo: [NSLocalizedDescriptionKey: text])
    }
    private func check() throws {
        if low > high { throw error("low is above high") }
    }
    override func validateForInsert() throws {
        try super.validateForInsert()
        try check()
    }
    override func validateForUpdate() throws {
        try super.validateForUpdate()
        try check()
    }
    override func validateForDelete() throws { throw error("not to be deleted") }
}
