// Classes with the models of stores that SwiftData has made, which Tests/Fixtures/swiftdata lists.

import Foundation
import SwiftData

/// Stands for a class of a framework that Linux does not have.
final class NSColor: NSObject {}

enum MyHomeV1: VersionedSchema {
    static let models: [any PersistentModel.Type] = [
        Expense.self
    ]
    static let versionIdentifier = Schema.Version(1, 0, 0)

    @Model final class Expense {
        var amount: Decimal = 0
        var createdAt: Date = Date.distantPast
        var currencyCode: String = ""
        var date: Date = Date.distantPast
        var id: UUID = UUID()
        var note: String?
        var updatedAt: Date = Date.distantPast
        init() {}
    }
}

enum MyHomeV2: VersionedSchema {
    static let models: [any PersistentModel.Type] = [
        Category.self,
        Expense.self,
    ]
    static let versionIdentifier = Schema.Version(2, 0, 0)

    @Model final class Category {
        var createdAt: Date = Date.distantPast
        var currencyCode: String = ""
        @Relationship(inverse: \Expense.categories) var expenses: [Expense] = []
        var id: UUID = UUID()
        var monthlyBudget: Decimal?
        var name: String?
        var sortOrder: Int = 0
        var symbolName: String?
        init() {}
    }

    @Model final class Expense {
        var amount: Decimal = 0
        var categories: [Category] = []
        var createdAt: Date = Date.distantPast
        var currencyCode: String = ""
        var date: Date = Date.distantPast
        var id: UUID = UUID()
        var note: String?
        var updatedAt: Date = Date.distantPast
        init() {}
    }
}

enum ResourcesManager: VersionedSchema {
    static let models: [any PersistentModel.Type] = [
        Component.self,
        CraftingRecipe.self,
        Item.self,
    ]
    static let versionIdentifier = Schema.Version(1, 0, 0)

    @Model final class Component {
        var count: Int = 0
        @Relationship(inverse: \CraftingRecipe.requiredComponents) var craftingRecipe: CraftingRecipe?
        var id: UUID = UUID()
        @Relationship(deleteRule: .nullify) var item: Item?
        init() {}
    }

    @Model final class CraftingRecipe {
        @Relationship(inverse: \Item.craftingRecipe) var producedItem: Item?
        var producedItemCount: String = ""
        var requiredComponents: [Component] = []
        init() {}
    }

    @Model final class Item {
        var craftingRecipe: CraftingRecipe?
        @Attribute(.unique) var name: String = ""
        init() {}
    }
}

enum DatabaseManager: VersionedSchema {
    static let models: [any PersistentModel.Type] = [
        Person.self
    ]
    static let versionIdentifier = Schema.Version(1, 0, 0)

    @Model final class Person {
        var age: Int = 0
        var createdAt: Date = Date.distantPast
        var name: String = ""
        var town: String = ""
        init() {}
    }
}

enum WelcomeTo: VersionedSchema {
    static let models: [any PersistentModel.Type] = [
        Item.self
    ]
    static let versionIdentifier = Schema.Version(1, 0, 0)

    @Model final class Item {
        var number: Int = 0
        var timestamp: Date = Date.distantPast
        init() {}
    }
}

enum SoapNames: VersionedSchema {
    static let models: [any PersistentModel.Type] = [
        Item.self,
        Name.self,
    ]
    static let versionIdentifier = Schema.Version(1, 0, 0)

    @Model final class Item {
        var timestamp: Date = Date.distantPast
        init() {}
    }

    @Model final class Name {
        var count: Int = 0
        var dbSource: String = ""
        var dbid: String = ""
        var dob: Date?
        var endDate: Date?
        var firstname: String = ""
        var gender: String = ""
        var lastname: String = ""
        var startDate: Date?
        init() {}
    }
}

enum ChefTime: VersionedSchema {
    static let models: [any PersistentModel.Type] = [
        SDAboutSection.self,
        SDFolder.self,
        SDIngredient.self,
        SDIngredientSection.self,
        SDRecipe.self,
        SDStep.self,
        SDStepSection.self,
    ]
    static let versionIdentifier = Schema.Version(1, 0, 0)

    @Model final class SDAboutSection {
        var description_: String = ""
        @Attribute(.unique) var id: UUID = UUID()
        var name: String = ""
        @Relationship(inverse: \SDRecipe.aboutSections) var parentRecipe: SDRecipe?
        init() {}
    }

    @Model final class SDFolder {
        enum FolderType: Codable { case systemAll, systemStandard, systemRecentlyDeleted, user }
        var folderType: FolderType = FolderType.systemAll
        @Relationship(deleteRule: .cascade, inverse: \SDFolder.parentFolder) var folders: [SDFolder] = []
        @Attribute(.unique) var id: UUID = UUID()
        var imageData: Data?
        var name: String = ""
        var parentFolder: SDFolder?
        @Relationship(deleteRule: .cascade, inverse: \SDRecipe.parentFolder) var recipes: [SDRecipe] = []
        init() {}
    }

    @Model final class SDIngredient {
        var amount: Double = 0
        @Attribute(.unique) var id: UUID = UUID()
        var measure: String = ""
        var name: String = ""
        @Relationship(inverse: \SDIngredientSection.ingredients) var parentIngredientSection: SDIngredientSection?
        init() {}
    }

    @Model final class SDIngredientSection {
        @Attribute(.unique) var id: UUID = UUID()
        @Relationship(deleteRule: .cascade) var ingredients: [SDIngredient] = []
        var name: String = ""
        @Relationship(inverse: \SDRecipe.ingredientSections) var parentRecipe: SDRecipe?
        init() {}
    }

    @Model final class SDRecipe {
        @Relationship(deleteRule: .cascade) var aboutSections: [SDAboutSection] = []
        @Attribute(.unique) var id: UUID = UUID()
        var imageData: [Data] = []
        @Relationship(deleteRule: .cascade) var ingredientSections: [SDIngredientSection] = []
        var name: String = ""
        var parentFolder: SDFolder?
        @Relationship(deleteRule: .cascade, inverse: \SDStepSection.parentRecipe) var stepSections: [SDStepSection] = []
        init() {}
    }

    @Model final class SDStep {
        var description_: String = ""
        @Attribute(.unique) var id: UUID = UUID()
        var imageData: [Data] = []
        @Relationship(inverse: \SDStepSection.steps) var parentStepSection: SDStepSection?
        init() {}
    }

    @Model final class SDStepSection {
        @Attribute(.unique) var id: UUID = UUID()
        var name: String = ""
        var parentRecipe: SDRecipe?
        @Relationship(deleteRule: .cascade) var steps: [SDStep] = []
        init() {}
    }
}

enum MetaCocktailsFirst: VersionedSchema {
    static let models: [any PersistentModel.Type] = [
        Cocktail.self,
        CocktailImage.self,
        Garnish.self,
        Ingredient.self,
        IngredientBase.self,
    ]
    static let versionIdentifier = Schema.Version(1, 0, 0)

    @Model final class Cocktail {
        struct Author: Codable {
            var id: UUID
            var person: String
            var place: String
            var year: String
        }
        struct BuildOrder: Codable {
            var instructions: [String]
        }
        enum Collection: Int, Codable { case one }
        struct CompiledTags: Codable {
            var flavors: [String]?
            var profiles: [String]?
            var styles: [String]?
            var booze: [String]?
            var nA: [String]?
        }
        enum GlasswareType: String, Codable { case one }
        enum Ice: String, Codable { case one }
        enum Variation: String, Codable { case one }
        #Index<Cocktail>([\.cocktailName], [\.collectionName], [\.cocktailName, \.collectionName])
        var author: Author?
        var buildOrder: BuildOrder?
        @Attribute(.unique) var cocktailName: String = ""
        var collection: Collection?
        var collectionName: String = ""
        var compiledTags: CompiledTags = CompiledTags()
        var favorite: Bool = false
        @Relationship(inverse: \Garnish.cocktails) var garnish: [Garnish] = []
        var glasswareType: GlasswareType = GlasswareType.one
        var ice: Ice?
        var id: UUID = UUID()
        @Relationship(deleteRule: .nullify) var imageAsset: CocktailImage?
        var isCustomCocktail: Bool = false
        var notes: String?
        @Relationship(deleteRule: .cascade) var spec: [Ingredient] = []
        var titleCocktail: Bool?
        var variation: Variation?
        var variationName: String?
        init() {}
    }

    @Model final class CocktailImage {
        struct BackgroundColor: Codable {
            var linearRed: Float
            var linearGreen: Float
            var linearBlue: Float
            var opacity: Float
        }
        struct DrinkColor: Codable {
            var linearRed: Float
            var linearGreen: Float
            var linearBlue: Float
            var opacity: Float
        }
        var backgroundColor: BackgroundColor = BackgroundColor(linearRed: 0, linearGreen: 0, linearBlue: 0, opacity: 0)
        var drinkColor: DrinkColor = DrinkColor(linearRed: 0, linearGreen: 0, linearBlue: 0, opacity: 0)
        var drinkLayer: String = ""
        var garnishes: [String]?
        var glassBackLayer: String = ""
        var glassReflection: String = ""
        var iceLayer: String?
        var inDrinkComponents: [String]?
        var innerRim: String = ""
        var straw: String?
        init() {}
    }

    @Model final class Garnish {
        var cocktails: [Cocktail]?
        @Attribute(.unique) var name: String = ""
        init() {}
    }

    @Model final class Ingredient {
        enum Unit: String, Codable { case one }
        var id: UUID = UUID()
        @Relationship(deleteRule: .nullify) var ingredientBase: IngredientBase
        var unit: Unit = Unit.one
        var value: Double = 0
        init(ingredientBase: IngredientBase) { self.ingredientBase = ingredientBase }
    }

    @Model final class IngredientBase {
        struct Prep: Codable {
            var id: UUID
            var prepIngredientName: String
            var prepRecipe: [String]
        }
        struct Tags: Codable {
            var flavors: [String]
            var profiles: [String]
            var styles: [String]
            var booze: [String]
            var nA: [String]
        }
        var baseCategory: String = ""
        var id: UUID = UUID()
        var info: String?
        var isCustom: Bool = false
        @Attribute(.unique) var name: String = ""
        var prep: Prep?
        var specialtyCategory: String = ""
        var tags: Tags?
        var umbrellaCategory: String = ""
        init() {}
    }
}

enum MetaCocktailsSecond: VersionedSchema {
    static let models: [any PersistentModel.Type] = [
        Cocktail.self,
        Garnish.self,
        Ingredient.self,
        IngredientBase.self,
    ]
    static let versionIdentifier = Schema.Version(1, 0, 0)

    @Model final class Cocktail {
        struct Author: Codable {
            var id: UUID
            var person: String
            var place: String
            var year: String
        }
        struct BuildOrder: Codable {
            var instructions: [String]
        }
        enum Collection: Int, Codable { case one }
        struct CompiledTags: Codable {
            var flavors: [String]?
            var profiles: [String]?
            var styles: [String]?
            var booze: [String]?
            var nA: [String]?
        }
        enum GlasswareType: String, Codable { case one }
        enum HistoricSpec: Codable {
            case algonquin, alaska, betweenTheSheets, bloodAndSand, bramble, bobbyBurns, chocolateCocktail, elDiablo,
                fogCutter, ginFizz, gimlet, silverFizz, hotToddy, mexicanFiringSquad, modernCocktail
        }
        enum Ice: String, Codable { case one }
        enum Variation: String, Codable { case one }
        #Index<Cocktail>([\.cocktailName], [\.collectionName], [\.cocktailName, \.collectionName])
        var author: Author?
        var buildOrder: BuildOrder?
        @Attribute(.unique) var cocktailName: String = ""
        var collection: Collection?
        var collectionName: String = ""
        var compiledTags: CompiledTags = CompiledTags()
        var favorite: Bool = false
        @Relationship(inverse: \Garnish.cocktails) var garnish: [Garnish] = []
        var glasswareType: GlasswareType = GlasswareType.one
        var historicSpec: HistoricSpec?
        var ice: Ice?
        var id: UUID = UUID()
        var isCustomCocktail: Bool = false
        var notes: String?
        @Relationship(deleteRule: .cascade) var spec: [Ingredient] = []
        var titleCocktail: Bool?
        var variation: Variation?
        var variationName: String?
        init() {}
    }

    @Model final class Garnish {
        var cocktails: [Cocktail]?
        @Attribute(.unique) var name: String = ""
        init() {}
    }

    @Model final class Ingredient {
        enum Unit: String, Codable { case one }
        var id: UUID = UUID()
        @Relationship(deleteRule: .nullify) var ingredientBase: IngredientBase
        var unit: Unit = Unit.one
        var value: Double = 0
        init(ingredientBase: IngredientBase) { self.ingredientBase = ingredientBase }
    }

    @Model final class IngredientBase {
        struct Prep: Codable {
            var id: UUID
            var prepIngredientName: String
            var prepRecipe: [String]
        }
        struct Tags: Codable {
            var flavors: [String]
            var profiles: [String]
            var styles: [String]
            var booze: [String]
            var nA: [String]
        }
        var baseCategory: String = ""
        var id: UUID = UUID()
        var info: String?
        var isCustom: Bool = false
        @Attribute(.unique) var name: String = ""
        var prep: Prep?
        var specialtyCategory: String = ""
        var tags: Tags?
        var umbrellaCategory: String = ""
        init() {}
    }
}

enum Pegase: VersionedSchema {
    static let models: [any PersistentModel.Type] = [
        EntityAccount.self,
        EntityBankStatement.self,
        EntityBanqueInfo.self,
        EntityCategory.self,
        EntityCheckBook.self,
        EntityFolderAccount.self,
        EntityIdentity.self,
        EntityInitAccount.self,
        EntityPaymentMode.self,
        EntityPreference.self,
        EntityRubric.self,
        EntitySchedule.self,
        EntitySousOperation.self,
        EntityStatus.self,
        EntityTransaction.self,
    ]
    static let versionIdentifier = Schema.Version(1, 0, 0)

    @Model final class EntityAccount {
        @Relationship(deleteRule: .cascade, inverse: \EntityBanqueInfo.account) var bank: EntityBanqueInfo?
        @Relationship(deleteRule: .cascade, inverse: \EntityBankStatement.account) var bankStatement:
            [EntityBankStatement]?
        @Relationship(deleteRule: .cascade, inverse: \EntityCheckBook.account) var carnetCheques: [EntityCheckBook]?
        @Relationship(deleteRule: .nullify) var compteLie: EntityTransaction?
        var currencyCode: String = ""
        var dateEcheancier: Date = Date.distantPast
        @Relationship(deleteRule: .cascade, inverse: \EntitySchedule.account) var echeanciers: [EntitySchedule]?
        @Relationship(deleteRule: .cascade, inverse: \EntityIdentity.account) var identity: EntityIdentity?
        @Relationship(deleteRule: .cascade, inverse: \EntityInitAccount.account) var initAccount: EntityInitAccount?
        var isAccount: Bool = false
        var isDemo: Bool = false
        var name: String = ""
        var nameIcon: String = ""
        @Relationship(deleteRule: .cascade, inverse: \EntityPaymentMode.account) var paymentMode: [EntityPaymentMode]?
        @Relationship(deleteRule: .cascade, inverse: \EntityPreference.account) var preference: EntityPreference?
        @Relationship(deleteRule: .cascade, inverse: \EntityRubric.account) var rubric: [EntityRubric]?
        @Relationship(deleteRule: .cascade, inverse: \EntityStatus.account) var status: [EntityStatus]?
        @Relationship(deleteRule: .cascade, inverse: \EntityTransaction.account) var transactions: [EntityTransaction]?
        @Attribute(.unique) var uuid: UUID = UUID()
        init() {}
    }

    @Model final class EntityBankStatement {
        var account: EntityAccount
        var cbDate: Date = Date.distantPast
        var cbSolde: Double = 0
        var endDate: Date = Date.distantPast
        var endSolde: Double = 0
        var interDate: Date = Date.distantPast
        var interSolde: Double = 0
        var num: Int = 0
        @Attribute(.externalStorage) var pdfDoc: Data?
        var pdfLink: String = ""
        var startDate: Date = Date.distantPast
        var startSolde: Double = 0
        @Attribute(.unique) var uuid: UUID = UUID()
        init(account: EntityAccount) { self.account = account }
    }

    @Model final class EntityBanqueInfo {
        var account: EntityAccount
        var adresse: String = ""
        var complement: String = ""
        var country: String = ""
        var cp: String = ""
        var email: String = ""
        var fonction: String = ""
        var mobile: String = ""
        var name: String = ""
        var nomBanque: String = ""
        var phone: String = ""
        var town: String = ""
        @Attribute(.unique) var uuid: UUID = UUID()
        init(account: EntityAccount) { self.account = account }
    }

    @Model final class EntityCategory {
        @Relationship(inverse: \EntitySchedule.category) var echeancier: [EntitySchedule]?
        var name: String = ""
        var objectif: Double = 0
        @Relationship(inverse: \EntityPreference.category) var preference: EntityPreference?
        @Relationship(deleteRule: .nullify) var rubric: EntityRubric?
        @Relationship(inverse: \EntitySousOperation.category) var sousOperations: [EntitySousOperation]?
        @Attribute(.unique) var uuid: UUID = UUID()
        init() {}
    }

    @Model final class EntityCheckBook {
        var account: EntityAccount?
        var name: String = ""
        var nbCheques: Int = 0
        var numPremier: Int = 0
        var numSuivant: Int = 0
        var prefix: String = ""
        @Attribute(.unique) var uuid: UUID = UUID()
        init() {}
    }

    @Model final class EntityFolderAccount {
        @Relationship(deleteRule: .nullify) var children: [EntityAccount] = []
        var isRoot: Bool = false
        var name: String = ""
        var nameImage: String = ""
        @Attribute(.unique) var uuid: UUID = UUID()
        init() {}
    }

    @Model final class EntityIdentity {
        var account: EntityAccount
        var adress: String = ""
        var complement: String = ""
        var country: String = ""
        var cp: String = ""
        var email: String = ""
        var mobile: String = ""
        var name: String = ""
        var nameImage: String = ""
        var phone: String = ""
        var surName: String = ""
        var town: String = ""
        @Attribute(.unique) var uuid: UUID = UUID()
        init(account: EntityAccount) { self.account = account }
    }

    @Model final class EntityInitAccount {
        var account: EntityAccount
        var bic: String = ""
        var cleRib: String = ""
        var codeAccount: String = ""
        var codeBank: String = ""
        var codeGuichet: String = ""
        var engage: Double = 0
        var iban: String = ""
        var prevu: Double = 0
        var realise: Double = 0
        @Attribute(.unique) var uuid: UUID = UUID()
        init(account: EntityAccount) { self.account = account }
    }

    @Model final class EntityPaymentMode {
        var account: EntityAccount
        @Attribute(.transformable(by: "ColorTransformer")) var color: NSColor = NSColor()
        var name: String = ""
        @Attribute(.unique) var uuid: UUID = UUID()
        init(account: EntityAccount) { self.account = account }
    }

    @Model final class EntityPreference {
        var account: EntityAccount
        var category: EntityCategory?
        @Relationship(deleteRule: .nullify) var paymentMode: EntityPaymentMode?
        var signe: Bool = false
        @Relationship(deleteRule: .nullify) var status: EntityStatus?
        @Attribute(.unique) var uuid: UUID = UUID()
        init(account: EntityAccount) { self.account = account }
    }

    @Model final class EntityRubric {
        var account: EntityAccount
        @Relationship(deleteRule: .cascade) var categorie: [EntityCategory] = []
        @Attribute(.transformable(by: "ColorTransformer")) var color: NSColor = NSColor()
        var name: String = ""
        @Attribute(.ephemeral) var total: Double = 0
        @Attribute(.unique) var uuid: UUID = UUID()
        init(account: EntityAccount) { self.account = account }
    }

    @Model final class EntitySchedule {
        var account: EntityAccount
        var amount: Double = 0
        var category: EntityCategory?
        var dateCree: Date = Date.distantPast
        var dateDebut: Date = Date.distantPast
        var dateFin: Date = Date.distantPast
        var dateModifie: Date = Date.distantPast
        var dateValeur: Date = Date.distantPast
        var frequence: Int16 = 0
        var isProcessed: Bool = false
        var libelle: String = ""
        @Relationship(deleteRule: .nullify) var linkedAccount: EntityAccount?
        var nextOccurrence: Int16 = 0
        var occurrence: Int16 = 0
        @Relationship(deleteRule: .nullify) var paymentMode: EntityPaymentMode?
        var typeFrequence: Int16 = 0
        @Attribute(.unique) var uuid: UUID = UUID()
        init(account: EntityAccount) { self.account = account }
    }

    @Model final class EntitySousOperation {
        var amount: Double = 0
        var category: EntityCategory?
        var libelle: String?
        @Relationship(inverse: \EntityTransaction.sousOperations) var transaction: EntityTransaction?
        @Attribute(.unique) var uuid: UUID = UUID()
        init() {}
    }

    @Model final class EntityStatus {
        var account: EntityAccount
        @Attribute(.transformable(by: "ColorTransformer")) var color: NSColor = NSColor()
        var name: String = ""
        var rawType: Int = 0
        @Attribute(.unique) var uuid: UUID = UUID()
        init(account: EntityAccount) { self.account = account }
    }

    @Model final class EntityTransaction {
        var _sectionIdentifier: String?
        var account: EntityAccount
        var bankStatement: Double = 0
        var checkNumber: String = ""
        var createAt: Date = Date.distantPast
        var dateOperation: Date = Date.distantPast
        var datePointage: Date = Date.distantPast
        @Relationship(deleteRule: .nullify) var paymentMode: EntityPaymentMode?
        @Attribute(.ephemeral) var solde: Double?
        @Relationship(deleteRule: .cascade) var sousOperations: [EntitySousOperation] = []
        @Relationship(deleteRule: .nullify) var status: EntityStatus?
        var updatedAt: Date = Date.distantPast
        @Attribute(.unique) var uuid: UUID = UUID()
        init(account: EntityAccount) { self.account = account }
    }
}
